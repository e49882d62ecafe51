"""Cliques start in order, held back by the real init container: upstream's scenarios SO1 to SO4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from grove.api.naming import labels
from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, SETS, AnyObject, answers
from tests.cluster.operator.support.workloads import upstream

READY_LATER = "pod-ready.grove.local/delay"


def slowly(body: dict[str, Any], last: str, delay: str = "300ms") -> dict[str, Any]:
    """All but the last clique take their time: whoever does not wait for them is ready first."""
    for clique in body["spec"]["template"]["cliques"]:
        if clique["name"] != last:
            clique.setdefault("annotations", {})[READY_LATER] = delay
    return body


def parents(world: World, pod: AnyObject) -> Iterator[tuple[str, int]]:
    """After whom a pod starts, by its clique: the PodCliques, and how many pods each must have."""
    clique = world.find(CLIQUES, pod.labels[labels.CLIQUE])
    for name in clique.spec.get("startsAfter", ()) if clique else ():
        if parent := world.find(CLIQUES, name):
            yield name, parent.spec["minAvailable"]


def in_order(world: World) -> None:
    """A pod that is ready for the first time has those ready before it after whom it starts. At the end of
    the set, its parts go in any order."""
    if any(workload.terminating for workload in world.all(SETS)):
        return
    for pod in filter(answers, world.all(PODS)):
        for parent, least in parents(world, pod):
            ready = [other for other in world.all(PODS, clique=parent) if answers(other)]
            assert len(ready) >= least, f"{pod.name} is ready before {parent}\n{world.dump()}"


def after_whom(world: World, name: str) -> dict[str, list[str]]:
    """What the pods of each clique are told to wait for."""
    found = {}
    for pod in world.pods():
        told = [one["args"] for one in pod.spec.get("initContainers", ()) if one["name"] == "grove-initc"]
        found[pod.labels[labels.CLIQUE].removeprefix(f"{name}-0-")] = told[0] if told else []
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
    "SO2 in order, least replicas": (
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
    "SO4 explicit, least replicas": (
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


@pytest.mark.parametrize(("name", "told"), SCENARIOS.values(), ids=SCENARIOS)
async def test_cliques_start_in_order(world: World, name: str, told: dict[str, list[str]]) -> None:
    world.always(lambda: in_order(world))
    async with operating(world):
        await world.create(SETS, slowly(upstream(name), last="pc-b" if name == "workload5" else "pc-c"))
        await world.until_ready()
    expected = {
        clique: [f"--podcliques={name}-0-{parent}" for parent in parents] for clique, parents in told.items()
    }
    assert after_whom(world, name) == expected
