"""Repeated keys of lists, by the schema of Kubernetes."""

from __future__ import annotations

import pytest

from grove.api.crds import openapi
from grove.api.shapes.list_keys import list_key_errors

POD = openapi.embedded("io.k8s.api.core.v1.PodSpec")


@pytest.mark.parametrize(
    ("pod", "paths"),
    [
        ({}, []),
        ({"volumes": [{"name": "a"}, {"name": "b"}]}, []),
        ({"volumes": [{"name": "a"}, {"name": "a"}, {"name": "a"}]}, ["pod.volumes"]),
        ({"volumes": [{}, {}]}, ["pod.volumes"]),
        ({"containers": [{"name": "a", "args": ["x", "x"]}]}, []),
        ({"containers": [{"name": "a", "env": [{"name": "E"}, {"name": "E"}]}]}, ["pod.containers[a].env"]),
        ({"containers": "text", "volumes": ["text", "text"]}, ["pod.volumes"]),
        ({"unknown": [{"name": "a"}, {"name": "a"}]}, []),
    ],
)
def test_repeated_key_is_an_error(pod, paths):
    assert [error.path for error in list_key_errors(pod, POD, "pod")] == paths
