"""Upstream's test workloads become ready, with exactly the objects and names that upstream's operator has."""

from __future__ import annotations

from functools import partial

from grove.api.naming import labels
from grove.kube.client.resource import PODS, SERVICES
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS
from tests.cluster.operator.support.state_snapshot import take_snapshot
from tests.cluster.operator.support.workloads import upstream

ALL_IN_THE_BASE = {
    "0": {
        "0-pc-a": 2,
        "0-sg-x-0-pc-b": 1,
        "0-sg-x-0-pc-c": 3,
        "0-sg-x-1-pc-b": 1,
        "0-sg-x-1-pc-c": 3,
    }
}
ONE_SCALED = {
    "0": {"0-pc-a": 2, "0-sg-x-0-pc-b": 1, "0-sg-x-0-pc-c": 3},
    "0-sg-x-0": {"0-sg-x-1-pc-b": 1, "0-sg-x-1-pc-c": 3},
}
GANGS_OF = {
    "workload1": ALL_IN_THE_BASE,
    "workload2": ONE_SCALED,
    "workload3": ALL_IN_THE_BASE,
    "workload4": ONE_SCALED,
    "workload5": ALL_IN_THE_BASE,
    "workload6": ONE_SCALED,
}


async def becomes_ready(world: World, name: str) -> None:
    await world.create(SETS, upstream(name))
    await world.checkpoint("ready", 10)
    _check_gangs(world, name)
    assert world.names(GROUPS) == [f"{name}-0-sg-x"]
    assert world.names(SERVICES) == [f"{name}-0"]
    for clique in world.all(CLIQUES):
        indices = [pod.labels[labels.POD_INDEX] for pod in world.all(PODS, clique=clique.name)]
        assert sorted(indices) == [str(index) for index in range(clique.spec["replicas"])]
    assert len(take_snapshot(world)) == 1 + 1 + 1 + len(GANGS_OF[name]) + 5 + 10
    await world.stop_comparing_deletes()
    await world.delete(SETS, name)
    await world.checkpoint("deleted", 0)


def _check_gangs(world: World, name: str) -> None:
    expected = {
        f"{name}-{gang}": {f"{name}-{clique}": count for clique, count in cliques.items()}
        for gang, cliques in GANGS_OF[name].items()
    }
    gangs = {
        gang.name: {group["name"]: len(group["podReferences"]) for group in gang.spec["podgroups"]}
        for gang in world.all(GANGS)
    }
    assert gangs == expected
    assert world.names(CLIQUES) == sorted(clique for cliques in expected.values() for clique in cliques)
    for gang in world.all(GANGS):
        groups = gang.spec["podgroups"]
        referenced = {reference["name"] for group in groups for reference in group["podReferences"]}
        assert referenced == set(world.names(PODS, gang=gang.name))


SCENARIOS = {name: partial(becomes_ready, name=name) for name in GANGS_OF}
