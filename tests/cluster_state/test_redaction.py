"""What objects of a snapshot do not contain any more."""

from __future__ import annotations

from typing import Any

import pytest

from grove.cluster_state.redaction import redacted, without_values
from grove.cluster_state.secret_text import REMOVED
from grove.dynamo.conversion.objects import as_written, converted
from tests.dynamo.builders import alpha, service

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
        ({"args": ["--api-key", SECRET]}, {"args": ["--api-key", REMOVED]}),
        ({"exec": {"command": [f"--token={SECRET}"]}}, {"exec": {"command": [f"--token={REMOVED}"]}}),
        ({"args": SECRET}, {"args": SECRET}),
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


def test_values_in_preserved_part_of_graph_are_removed():
    written = alpha(A=service(envs=[{"name": "KEY", "value": "secret"}], labels={"team": "a"}))
    stored = converted(written, "v1beta1")
    assert "secret" in stored["metadata"]["annotations"]["nvidia.com/dgd-v1alpha1"]
    found = redacted(stored)
    assert "secret" not in str(found)
    assert as_written(found)["spec"] == redacted(written)["spec"], "it is still complete"


def test_preserved_part_that_cannot_be_read_is_removed():
    body = {"metadata": {"annotations": {"nvidia.com/dgd-v1alpha1": "{secret"}}}
    assert redacted(body)["metadata"]["annotations"] == {"nvidia.com/dgd-v1alpha1": "(removed)"}
