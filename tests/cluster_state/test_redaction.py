"""What objects of a snapshot do not contain any more."""

from __future__ import annotations

from typing import Any

import pytest

from grove.cluster_state.redaction import REMOVED, redacted, without_values

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ({"env": [{"name": "A", "value": SECRET}]}, {"env": [{"name": "A", "value": REMOVED}]}),
        ({"env": [{"name": "A", "valueFrom": {}}]}, {"env": [{"name": "A", "valueFrom": {}}]}),
        ({"envs": [{"name": "A", "value": SECRET}]}, {"envs": [{"name": "A", "value": REMOVED}]}),
        ({"env": {"A": SECRET}}, {"env": {"A": REMOVED}}),
        ({"env": "none"}, {"env": "none"}),
        (
            {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
            {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": REMOVED}]}},
        ),
        ({"cliques": [{"annotations": {"other.io/key": SECRET}}]}, {"cliques": [{}]}),
        (
            {"annotations": {"other.io/key": SECRET, "grove.io/auto-mnnvl": "enabled"}},
            {"annotations": {"grove.io/auto-mnnvl": "enabled"}},
        ),
        ({"annotations": None}, {}),
        ({"args": ["--port", "80"]}, {"args": ["--port", "80"]}),
    ],
)
def test_values_are_removed_wherever_they_are(found: dict[str, Any], kept: dict[str, Any]) -> None:
    assert without_values({"spec": [found]}) == {"spec": [kept]}


def test_object_has_no_data_and_no_field_managers() -> None:
    metadata = {"name": "a", "managedFields": [{}], "annotations": {"other.io/key": SECRET}}
    assert redacted({"metadata": metadata, "data": {"key": SECRET}, "spec": {}}) == {
        "metadata": {"name": "a"},
        "spec": {},
    }
