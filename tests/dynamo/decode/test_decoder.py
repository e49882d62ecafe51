"""Graphs decoded from raw JSON: which pod fields are known."""

from __future__ import annotations

from typing import Any

import pytest

from grove.dynamo.decode.decoder import decode_errors
from tests.dynamo.builders import alpha, component, deployment


def with_pod(version: str, **fields: Any) -> dict[str, Any]:
    """A graph whose worker has these fields in its pod spec."""
    if version == "v1alpha1":
        return alpha(Worker={"componentType": "worker", "extraPodSpec": fields})
    worker = component()
    worker["podTemplate"]["spec"] |= fields
    return deployment(worker)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize(
    "field",
    [
        {"workloadRef": {"name": "w", "podGroup": "g"}},
        {"schedulingGroup": {"podGroupName": "g"}},
        {"evictionResponders": [{"name": "example.com/a", "priority": 1}]},
    ],
    ids=["1.35", "1.36", "1.37"],
)
def test_pod_field_of_each_kubernetes_version_is_known(version, field):
    assert decode_errors(with_pod(version, **field)) == ()
    misspelt = {f"{name}s": value for name, value in field.items()}
    (error,) = decode_errors(with_pod(version, **misspelt))
    assert "unknown field" in str(error)
