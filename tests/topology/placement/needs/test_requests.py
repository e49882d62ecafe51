"""Requests of pods, as k8s.io/component-helpers/resource counts them."""

from __future__ import annotations

from typing import Any

import pytest

from grove.topology.placement.needs.requests import amounts, pod_requests


def container(name: str = "main", **requests: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests}}


def sidecar(name: str, **requests: str) -> dict[str, Any]:
    return {**container(name, **requests), "restartPolicy": "Always"}


def status(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


INFEASIBLE = [{"type": "PodResizePending", "reason": "Infeasible"}]

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, int]]] = {
    "no requests": ({"containers": [{"name": "main"}]}, {}, {}),
    "containers add up": (
        {"containers": [container(cpu="500m", memory="1Gi"), container("b", cpu="1.5")]},
        {},
        {"cpu": 2000, "memory": 1 << 30},
    ),
    "fractions are rounded up once": (
        {"containers": [container(cpu="0.1m"), container("b", cpu="0.1m")]},
        {},
        {"cpu": 1},
    ),
    "a zero request stays": ({"containers": [container(cpu="0")]}, {}, {"cpu": 0}),
    "the largest init container counts": (
        {"containers": [container(cpu="1")], "initContainers": [container("i", cpu="3")]},
        {},
        {"cpu": 3000},
    ),
    "an init container without sidecars before it": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [container("i", cpu="3"), sidecar("s", cpu="1")],
        },
        {},
        {"cpu": 3000},
    ),
    "an init container with sidecars before it": (
        {
            "containers": [container(cpu="1")],
            "initContainers": [sidecar("s", cpu="1"), container("i", cpu="3")],
        },
        {},
        {"cpu": 4000},
    ),
    "sidecars run beside containers": (
        {"containers": [container(cpu="2")], "initContainers": [sidecar("s", cpu="1")]},
        {},
        {"cpu": 3000},
    ),
    "pod level replaces cpu, not gpus": (
        {
            "containers": [container(cpu="2", **{"nvidia.com/gpu": "4"})],
            "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "9"}},
        },
        {},
        {"cpu": 1000, "nvidia.com/gpu": 4},
    ),
    "overhead is added": (
        {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Ki"}},
        {},
        {"cpu": 1250, "memory": 1024},
    ),
    "allocated is more than requested": (
        {"containers": [container(cpu="1")]},
        {"containerStatuses": [status("main", allocatedResources={"cpu": "2"})]},
        {"cpu": 2000},
    ),
    "actual is more than allocated": (
        {"containers": [container(cpu="1")]},
        {
            "containerStatuses": [
                status("main", allocatedResources={"cpu": "1"}, resources={"requests": {"cpu": "3"}})
            ]
        },
        {"cpu": 3000},
    ),
    "an infeasible resize does not count": (
        {"containers": [container(cpu="64")]},
        {"conditions": INFEASIBLE, "containerStatuses": [status("main", allocatedResources={"cpu": "1"})]},
        {"cpu": 1000},
    ),
    "an infeasible resize without any report": (
        {"containers": [container(cpu="64")]},
        {"conditions": INFEASIBLE},
        {},
    ),
    "sums of the kubelet for the pod": (
        {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2"}}},
        {"allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "3"}}},
        {"cpu": 4000},
    ),
    "an infeasible resize at pod level": (
        {"containers": [], "resources": {"requests": {"cpu": "9"}}},
        {
            "conditions": INFEASIBLE,
            "allocatedResources": {"cpu": "4"},
            "resources": {"requests": {"cpu": "3"}},
        },
        {"cpu": 4000},
    ),
}


@pytest.mark.parametrize(("spec", "reported", "expected"), CASES.values(), ids=CASES.keys())
def test_pod_requests(spec: dict[str, Any], reported: dict[str, Any], expected: dict[str, int]) -> None:
    assert pod_requests({"spec": spec, "status": reported}) == {**expected, "pods": 1}


def test_allocatable_is_counted_in_integers() -> None:
    assert amounts({"cpu": "63900m", "memory": "2Gi", "pods": "110"}) == {
        "cpu": 63_900,
        "memory": 2 << 30,
        "pods": 110,
    }


def test_bad_quantity_is_named() -> None:
    with pytest.raises(ValueError, match="'many' is not a quantity"):
        amounts({"cpu": "many"})
