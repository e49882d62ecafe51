"""Decisions on one gang."""

from __future__ import annotations

from grove import timing
from grove.plan.placement.assignment import Assignment, Decision, NodeLabels, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.decision import Circumstances, decide
from grove.plan.placement.demand import WantedPod
from grove.topology.placement.model import PODS, Node
from tests.plan.placement.gangs import BLOCK, GPU, HOST, RACK, demand, racks


def decided(work: int) -> Decision:
    capacity = ClusterCapacity()
    capacity.observe(racks(2, 4))
    return decide(capacity, demand("a", 4, required=RACK), Circumstances(work=work)).decision


def test_search_stopped_at_its_limit_is_marked() -> None:
    assert isinstance(decided(timing.PLACEMENT_WORK), Assignment)
    found = decided(1)
    assert isinstance(found, Waiting)
    assert found.gave_up
    assert "stopped at its limit" in found.message


def two_pools(hosts: int = 4) -> ClusterCapacity:
    """One rack, and nodes of another pool in the same block, which have more room and no racks."""
    others = {
        name: ObservedNode(Node(name, {BLOCK: "b0", HOST: name}, {GPU: 16, PODS: 110}))
        for name in (f"other-{number}" for number in range(hosts))
    }
    capacity = ClusterCapacity()
    capacity.observe({**racks(1, 2), **others})
    return capacity


def test_gang_goes_to_nodes_that_belong_to_its_topology() -> None:
    found = decide(two_pools(), demand("a", 2, required=BLOCK), Circumstances()).decision
    assert isinstance(found, Assignment)
    assert set(found.nodes.values()) == {"r0-h0", "r0-h1"}
    assert found.node_labels("a") == NodeLabels({BLOCK: "b0"}, present=(RACK, HOST))


def test_gang_waits_rather_than_go_to_another_pool() -> None:
    found = decide(two_pools(), demand("a", 3, required=BLOCK), Circumstances()).decision
    assert isinstance(found, Waiting)
    assert f"4 nodes without a matching {RACK}" in found.message


def test_gang_without_required_level_goes_to_any_pool() -> None:
    found = decide(two_pools(), demand("a", 5), Circumstances()).decision
    assert isinstance(found, Assignment)
    assert found.present == {}


def test_gang_that_is_in_another_pool_stays_there() -> None:
    """It was bound before the nodes were told apart: its lost pod is replaced."""
    bound = {number: WantedPod(PodSlot("a", number), f"p{number}", "other-0", False) for number in range(2)}
    found = decide(two_pools(), demand("a", 5, required=BLOCK, existing=bound), Circumstances()).decision
    assert isinstance(found, Assignment)
    assert len(found.nodes) == 3
    assert found.present == {}


def test_wider_level_that_no_node_has_is_named() -> None:
    capacity = ClusterCapacity()
    capacity.observe({"n1": ObservedNode(Node("n1", {RACK: "r0", HOST: "n1"}, {GPU: 8, PODS: 110}))})
    found = decide(capacity, demand("a", 1, required=RACK), Circumstances()).decision
    assert isinstance(found, Waiting)
    assert f"no node has the label {BLOCK}" in found.message
