"""Decisions on one gang."""

from __future__ import annotations

from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment, Decision, GangName, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.decision import Circumstances, decide
from grove.plan.placement.demand import Demand, WantedClique, WantedPod, clique_unit
from grove.topology.placement.model import PODS, PodShape, Unit
from tests.plan.placement.gangs import BLOCK, GPU, LEVELS, RACK, demand, node, racks, used


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
