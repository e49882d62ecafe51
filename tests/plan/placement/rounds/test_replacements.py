"""Replacements of pods in domains that are held for gangs that wait."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from grove.plan.placement.assignment import PodSlot
from grove.plan.placement.cluster_capacity import ObservedNode
from grove.plan.placement.demand import Demand
from tests.plan.placement.gangs import BLOCK, RACK, demand, gated, racks
from tests.plan.placement.rounds.clusters import AFTER, NOW, Cluster, full


def replaced(wanted: Demand, rack: str = "r0", **predecessors: str) -> Demand:
    """A gang that ran in a rack and all of whose pods are replaced; by the names of pods, the nodes of those
    whose predecessors still run."""
    pins = {wanted.pods[0].slot.clique: {BLOCK: "b0", RACK: rack}}
    named = gated(wanted)
    pods = tuple(replace(pod, predecessor=predecessors.get(pod.name, "")) for pod in named.pods)
    return replace(named, pods=pods, pinned=pins, was_scheduled=True)


def holding(nodes: Mapping[str, ObservedNode], wanted: Demand) -> Cluster:
    """A full cluster with a gang that holds nodes."""
    cluster = Cluster(full(nodes), wanted)
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert cluster.held(wanted.gang.name)
    return cluster


def test_replacement_of_a_whole_gang_goes_before_a_hold() -> None:
    nodes = racks(1, 4)
    cluster = holding(nodes, demand("a", 4, required=RACK, created="1"))
    cluster.add(replaced(demand("b", 2, required=RACK, created="2")))
    cluster.round(NOW + AFTER)
    assert cluster.states["b-gang"].waits, "its predecessors still run"
    cluster.round(NOW + AFTER, {name: nodes[name] for name in ("r0-h0", "r0-h1")})
    assert set(cluster.assigned("b-gang").nodes.values()) == {"r0-h0", "r0-h1"}
    cluster.round(NOW + AFTER, {})
    assert cluster.held("a-gang") == set(), "it gives its nodes back"
    cluster.round(NOW + AFTER, {}, nominations="b-gang")
    assert cluster.assigned("b-gang").released


def test_held_gang_that_would_fit_goes_after_a_replacement() -> None:
    nodes = racks(1, 2)
    cluster = holding(nodes, demand("a", 2, required=RACK, created="1"))
    cluster.add(replaced(demand("b", 2, required=RACK, created="2")))
    cluster.round(NOW + AFTER, nodes)
    assert set(cluster.assigned("b-gang").nodes.values()) == {"r0-h0", "r0-h1"}
    assert cluster.states["a-gang"].waits


@pytest.mark.parametrize("created", ["0", "2"])
def test_replacement_keeps_held_nodes_of_its_predecessors(created: str) -> None:
    nodes = racks(1, 2)
    cluster = holding(nodes, demand("a", 1, required=RACK, created="1"))
    (host,) = cluster.held("a-gang")
    (other,) = {*nodes} - {host}
    wanted = demand("b", 2, required=RACK, created=created)
    cluster.add(replaced(wanted, **{"b-0": host, "b-1": other}))
    cluster.round(NOW + AFTER, {})
    assert cluster.assigned("b-gang").nodes == {PodSlot("b", 0): host, PodSlot("b", 1): other}
    state = cluster.states["b-gang"]
    cluster.states["b-gang"] = replace(state, demand=replaced(wanted, **{"b-1": other}))
    cluster.round(NOW + AFTER, {host: nodes[host]})
    assert cluster.states["a-gang"].waits, "the first of both nodes that gets free is not given to it"
    assert cluster.assigned("b-gang").nodes == {PodSlot("b", 0): host, PodSlot("b", 1): other}
    cluster.states["b-gang"] = replace(cluster.states["b-gang"], demand=replaced(wanted))
    cluster.round(NOW + AFTER, {other: nodes[other]})
    cluster.round(NOW + AFTER, {}, nominations="b-gang")
    assert cluster.assigned("b-gang").released


def test_hold_in_another_domain_does_not_give_way() -> None:
    nodes = racks(2, 1)
    cluster = holding(nodes, demand("a", 1, required=RACK, created="1"))
    assert cluster.held("a-gang") == {"r0-h0"}
    cluster.add(replaced(demand("b", 1, required=RACK, created="2"), "r1"))
    cluster.round(NOW + AFTER, {"r0-h0": nodes["r0-h0"]})
    assert set(cluster.assigned("a-gang").nodes.values()) == {"r0-h0"}
    assert cluster.states["b-gang"].waits


def test_terminated_gang_does_not_go_before_a_hold() -> None:
    nodes = racks(1, 4)
    cluster = holding(nodes, demand("a", 4, required=RACK, created="1"))
    terminated = replaced(demand("b", 2, required=RACK, created="2"))
    cluster.add(replace(terminated, was_scheduled=False))
    cluster.round(NOW + AFTER, {name: nodes[name] for name in ("r0-h0", "r0-h1")})
    assert cluster.states["b-gang"].waits
