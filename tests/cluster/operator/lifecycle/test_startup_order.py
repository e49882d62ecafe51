"""Startup order, enforced by the real init container: upstream's scenarios SO1 to SO4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from grove.api.naming import labels
from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, SETS, AnyObject, is_ready
from tests.cluster.operator.support.workloads import upstream

READY_LATER = "pod-ready.grove.local/delay"


def with_late_readiness(body: dict[str, Any], last: str, delay: str = "300ms") -> dict[str, Any]:
    """The set with late readiness of all cliques but the last: pods that do not wait would be ready first."""
    for clique in body["spec"]["template"]["cliques"]:
        if clique["name"] != last:
            clique.setdefault("annotations", {})[READY_LATER] = delay
    return body


def parents(world: World, pod: AnyObject) -> Iterator[tuple[str, int]]:
    """The cliques that the clique of a pod starts after, each with its number of pods that must be ready."""
    clique = world.find(CLIQUES, pod.labels[labels.CLIQUE])
    for name in clique.spec.get("startsAfter", ()) if clique else ():
        if parent := world.find(CLIQUES, name):
            yield name, parent.spec["minAvailable"]


def in_order(world: World) -> None:
    """No pod is ready before the pods of the cliques that its clique starts after. While the set is deleted,
    any order is fine."""
    if any(workload.terminating for workload in world.all(SETS)):
        return
    for pod in filter(is_ready, world.all(PODS)):
        for parent, least in parents(world, pod):
            ready = [other for other in world.all(PODS, clique=parent) if is_ready(other)]
            assert len(ready) >= least, f"{pod.name} is ready before {parent}\n{world.dump()}"


def init_arguments(world: World, name: str) -> dict[str, list[str]]:
    """The arguments of the init container in the pods of each clique: the cliques to wait for."""
    found = {}
    for pod in world.pods():
        args = [one["args"] for one in pod.spec.get("initContainers", ()) if one["name"] == "grove-initc"]
        found[pod.labels[labels.CLIQUE].removeprefix(f"{name}-0-")] = args[0] if args else []
    return found


SCENARIOS = {
    "SO1 in order, all replicas": (
        "workload3",
        {
            "pc-a": [],
            "sg-x-0-pc-b": ["pc-a:2"],
            "sg-x-1-pc-b": ["pc-a:2"],
            "sg-x-0-pc-c": ["sg-x-0-pc-b:1", "sg-x-1-pc-b:1"],
            "sg-x-1-pc-c": ["sg-x-0-pc-b:1", "sg-x-1-pc-b:1"],
        },
    ),
    "SO2 in order, minimum replicas": (
        "workload4",
        {
            "pc-a": [],
            "sg-x-0-pc-b": ["pc-a:1"],
            "sg-x-0-pc-c": ["sg-x-0-pc-b:1"],
            "sg-x-1-pc-b": [],
            "sg-x-1-pc-c": ["sg-x-1-pc-b:1"],
        },
    ),
    "SO3 explicit, all replicas": (
        "workload5",
        {
            "pc-a": [],
            "sg-x-0-pc-c": ["pc-a:2"],
            "sg-x-1-pc-c": ["pc-a:2"],
            "sg-x-0-pc-b": ["sg-x-0-pc-c:3", "sg-x-1-pc-c:3"],
            "sg-x-1-pc-b": ["sg-x-0-pc-c:3", "sg-x-1-pc-c:3"],
        },
    ),
    "SO4 explicit, minimum replicas": (
        "workload6",
        {
            "pc-a": [],
            "sg-x-0-pc-b": ["pc-a:1"],
            "sg-x-0-pc-c": ["sg-x-0-pc-b:1"],
            "sg-x-1-pc-b": [],
            "sg-x-1-pc-c": ["sg-x-1-pc-b:1"],
        },
    ),
}


@pytest.mark.proves("start-order", scheduler="any")
@pytest.mark.parametrize(("name", "waits_for"), SCENARIOS.values(), ids=SCENARIOS)
async def test_cliques_start_in_order(world: World, name: str, waits_for: dict[str, list[str]]) -> None:
    world.always(lambda: in_order(world))
    async with operating(world):
        await world.create(
            SETS, with_late_readiness(upstream(name), last="pc-b" if name == "workload5" else "pc-c")
        )
        await world.until_ready()
    expected = {
        clique: [f"--podcliques={name}-0-{parent}" for parent in parents]
        for clique, parents in waits_for.items()
    }
    assert init_arguments(world, name) == expected
