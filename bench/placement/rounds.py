"""How long rounds of placement take where many gangs compete, in seconds of one core.

500 nodes, 2,000 pods of others without a node, and gangs of four shapes, each of its own priority: once on
full nodes, where all gangs wait, and once on empty ones, where all are nominated.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from time import process_time
from typing import Any

from msgspec.structs import replace

from bench.placement import clusters
from grove.plan.placement.assignment import GangName, PodSlot
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.demand import Demand, WantedClique, WantedPod, clique_unit
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import ClusterChanges, GangState, ObservedGang
from grove.topology.placement.model import Node, Unit

NODES, FOREIGN = 500, 2000
GANGS = (200, 400, 800)
HOLD_AFTER = 60.0
LOW, HIGH = -1, 1_000_000
"""The priorities of bound pods: those of low priority are too few to make room for a gang."""
_PODS = (("small", 4), ("medium", 4), ("large", 4), ("large", 8))
"""The shape and the number of the pods of gangs that wait."""


def measure() -> list[dict[str, Any]]:
    """For each number of gangs, the seconds of each round."""
    return [{"gangs": count, "seconds": {**_waiting(count), **_nominated(count)}} for count in GANGS]


class _Cluster:
    """A cluster with gangs, round after round."""

    def __init__(self, nodes: Mapping[str, ObservedNode], gangs: list[Demand]) -> None:
        self._capacity, self._nodes = ClusterCapacity(), nodes
        self.states = {each.gang: GangState(each) for each in gangs}
        self._priorities = {each.gang: number for number, each in enumerate(gangs)}

    def round(self, now: float, nodes: Mapping[str, ObservedNode] | None = None, in_flight: int = 0) -> float:
        """Seconds of a round that observes all nominations, and these pods of others that are not bound."""
        gangs = [
            ObservedGang(
                state,
                nominations={_pod_name(slot): node for slot, node in state.nominations.items()},
                in_flight=frozenset(map(str, range(in_flight))),
                priority=self._priorities[name],
            )
            for name, state in self.states.items()
        ]
        unbound = [clusters.SHAPES["small"].requests] * FOREIGN
        changes = ClusterChanges(nodes or self._nodes, gangs, unbound=unbound, hold_after=HOLD_AFTER)
        self._nodes = {}
        start = process_time()
        result = run_round(self._capacity, changes, now)
        spent = process_time() - start
        self.states |= result.changed
        return spent

    @property
    def held(self) -> int:
        return sum(state.hold is not None for state in self.states.values())

    @property
    def waiting(self) -> int:
        return sum(state.waits for state in self.states.values())


def _waiting(count: int) -> dict[str, float]:
    """All gangs are refused, nodes are held for some, and then room for a single pod gets free."""
    listed = clusters.nodes(NODES, Random(1))
    nodes = {each.name: _full(each, LOW if i % clusters.RACK == 0 else HIGH) for i, each in enumerate(listed)}
    cluster = _Cluster(nodes, [_gang(number, *_PODS[number % len(_PODS)]) for number in range(count)])
    refused = cluster.round(0.0)
    held = cluster.round(HOLD_AFTER)
    name, full = next(iter(nodes.items()))
    freed = cluster.round(HOLD_AFTER + 1, {name: replace(full, use={HIGH: {clusters.GPU: 7}})})
    assert cluster.waiting == count
    assert cluster.held
    return {"refused": refused, "held": held, "one_freed": freed}


def _nominated(count: int) -> dict[str, float]:
    """All gangs are nominated, wait for pods in flight, and are released."""
    nodes = {each.name: ObservedNode(each) for each in clusters.nodes(NODES, Random(1))}
    cluster = _Cluster(nodes, [_gang(number, "small", 4) for number in range(count)])
    nominated = cluster.round(0.0)
    backlog = cluster.round(1.0, in_flight=FOREIGN)
    released = cluster.round(2.0)
    assert not cluster.waiting
    assert not any(state.nominations for state in cluster.states.values())
    return {"nominated": nominated, "backlog": backlog, "released": released}


def _full(node: Node, priority: int) -> ObservedNode:
    """A node without a free GPU, one of them in use by a pod of this priority."""
    use = {HIGH: {clusters.GPU: 8, "pods": 8}}
    if priority != HIGH:
        use = {priority: {clusters.GPU: 1, "pods": 1}, HIGH: {clusters.GPU: 7, "pods": 7}}
    return ObservedNode(node, use)


def _gang(number: int, shape: str, count: int) -> Demand:
    """A gang that is to be in one rack."""
    clique = f"g{number:03}"
    slots = [PodSlot(clique, index) for index in range(count)]
    pods = tuple(WantedPod(slot, _pod_name(slot)) for slot in slots)
    parts = (clique_unit(WantedClique(clique, count, clusters.SHAPES[shape], pods)),)
    unit = Unit(f"{clique}-gang", "rack", "", parts)
    created = f"2026-01-01T00:00:{number:04}Z"
    return Demand(GangName("ns", unit.name), unit, pods, clusters.LEVELS, created=created, constrained=True)


def _pod_name(slot: PodSlot) -> str:
    return f"{slot.clique}-{slot.number}"
