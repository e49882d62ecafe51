"""Decisions on one gang."""

from __future__ import annotations

from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment, Decision, GangName, NodeLabels, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.decision import Circumstances, decide
from grove.plan.placement.demand import Demand, WantedClique, WantedPod, clique_unit
from grove.topology.placement.model import PODS, Node, PodShape, Unit
from tests.plan.placement.gangs import BLOCK, GPU, HOST, LEVELS, RACK, demand, node, racks, used


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


def two_groups(*pods: WantedPod) -> Demand:
    """A gang in one block, with two group replicas in one rack each: r0 and r1 so far."""
    shape = PodShape({GPU: 8, PODS: 1})
    cliques = [
        clique_unit(WantedClique(name, 2, shape, tuple(pod for pod in pods if pod.slot.clique == name)))
        for name in ("x", "y")
    ]
    groups = tuple(Unit(f"group-{each.name}", RACK, parts=(each,)) for each in cliques)
    pins = {"x": {BLOCK: "b0", RACK: "r0"}, "y": {BLOCK: "b0", RACK: "r1"}}
    gang = Unit("gang", BLOCK, parts=groups)
    return Demand(GangName("ns", "gang"), gang, pods, LEVELS, pinned=pins, constrained=True)


def bound(clique: str, number: int, node: str) -> WantedPod:
    return WantedPod(PodSlot(clique, number), f"{clique}-{number}", node, gated=False)


def lost(clique: str, number: int) -> WantedPod:
    return WantedPod(PodSlot(clique, number))


X = (bound("x", 0, "r0-h0"), bound("x", 1, "r0-h1"))


def placed(wanted: Demand, **taken: int) -> Assignment | Waiting:
    capacity = ClusterCapacity()
    nodes = racks(3, 2)
    names = {f"{rack}-h{host}": count for rack, count in taken.items() for host in range(2)}
    capacity.observe({name: used(each, names.get(name, 0)) for name, each in nodes.items()})
    return decide(capacity, wanted, Circumstances(may_preempt=False)).decision


def test_unit_without_pods_goes_to_another_domain() -> None:
    wanted = two_groups(*X, lost("y", 0), lost("y", 1))
    stays, moved = placed(wanted, r0=8), placed(wanted, r0=8, r1=8)
    assert isinstance(stays, Assignment)
    assert isinstance(moved, Assignment)
    assert (stays.pins["y"][RACK], moved.pins["y"][RACK]) == ("r1", "r2")
    assert moved.pins["x"][RACK] == "r0", "pods that run stay where they are"


def test_unit_with_a_released_pod_keeps_its_domain() -> None:
    released = WantedPod(PodSlot("y", 0), "y-0", gated=False)
    assert isinstance(placed(two_groups(*X, released, lost("y", 1)), r0=8, r1=8), Waiting)


def test_unit_that_moves_stays_in_the_domain_of_its_gang() -> None:
    """The rack outside of the block has more room, and the gang has pods in its block."""
    wanted = two_groups(*X, lost("y", 0), lost("y", 1))
    capacity = ClusterCapacity()
    nodes = {name: used(each, 8) for name, each in racks(2, 2).items()}
    outside = {f"r9-h{host}": ObservedNode(node(f"r9-h{host}", "r9", block="b1")) for host in range(2)}
    capacity.observe({**nodes, **outside})
    assert isinstance(decide(capacity, wanted, Circumstances(may_preempt=False)).decision, Waiting)


def test_gang_that_starts_over_prefers_its_domain_among_equals() -> None:
    wanted = two_groups(lost("x", 0), lost("x", 1), lost("y", 0), lost("y", 1))
    alone = replace(wanted, unit=replace(wanted.unit, required=RACK, parts=wanted.unit.parts[:1]))
    alone = replace(alone, pods=alone.pods[:2], pinned={"x": {BLOCK: "b0", RACK: "r1"}})
    found = placed(alone)
    assert isinstance(found, Assignment)
    assert found.pins["x"][RACK] == "r1"


def test_gang_that_starts_over_forgets_its_domain() -> None:
    """Another domain is better: to go there breaks up no whole one."""
    wanted = two_groups(lost("x", 0))
    alone = replace(wanted, unit=replace(wanted.unit, required=RACK, parts=wanted.unit.parts[:1]))
    alone = replace(alone, pinned={"x": {BLOCK: "b0", RACK: "r1"}})
    capacity = ClusterCapacity()
    nodes = racks(3, 2)
    capacity.observe({**nodes, "r2-h0": used(nodes["r2-h0"], 8)})
    found = decide(capacity, alone, Circumstances(may_preempt=False)).decision
    assert isinstance(found, Assignment)
    assert found.pins["x"][RACK] == "r2"
    existing = replace(alone, pods=(replace(alone.pods[0], name="x-0"),))
    found = decide(capacity, existing, Circumstances(may_preempt=False)).decision
    assert isinstance(found, Assignment)
    assert found.pins["x"][RACK] == "r1", "a gated pod shows that the gang is about to start there"


def test_successor_follows_a_rack_that_was_renamed() -> None:
    """The pods that run are still in one rack; the pins have its former name."""
    capacity = ClusterCapacity()
    capacity.observe({name: used(each, 8) if name == "r0-h0" else each for name, each in racks(2, 2).items()})
    bound = WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False)
    wanted = demand("a", 2, required=RACK, existing={0: bound}, pinned={"a": {BLOCK: "b0", RACK: "former"}})
    found = decide(capacity, wanted, Circumstances()).decision
    assert isinstance(found, Assignment)
    assert found.nodes == {PodSlot("a", 1): "r0-h1"}
    assert found.pins == {"a": {BLOCK: "b0", RACK: "r0"}}
