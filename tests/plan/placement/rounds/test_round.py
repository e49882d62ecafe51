"""Rounds of placement: the order of gangs, plentiful and scarce nodes, extra pods, successors."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove import timing
from grove.plan.placement import decision
from grove.plan.placement.assignment import Assignment, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.demand import Demand, Fallback, WantedPod
from grove.plan.placement.rounds import next_state
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import GangState, ObservedGang
from grove.topology.placement.answers import GaveUp
from tests.plan.placement.gangs import (
    BLOCK,
    GPU,
    HOST,
    LEVELS,
    RACK,
    asks,
    changes,
    decided,
    demand,
    racks,
    used,
    waits,
)

NOW = 1000.0


def test_gang_with_slack_is_pinned_and_not_nominated() -> None:
    result = run_round(ClusterCapacity(), changes(racks(2, 4), asks(demand("a", 2, required=RACK))), NOW)
    found = decided(result, "a-gang")
    assert not found.nominated
    assert found.pins == {"a": {BLOCK: "b0", RACK: found.domain[-1]}}
    assert len(set(found.nodes.values())) == 2


def test_gang_without_slack_is_nominated() -> None:
    result = run_round(ClusterCapacity(), changes(racks(2, 3), asks(demand("a", 2, required=RACK))), NOW)
    assert decided(result, "a-gang").gated


def test_gang_without_constraint_is_not_pinned() -> None:
    result = run_round(ClusterCapacity(), changes(racks(2, 4), asks(demand("a", 4))), NOW)
    found = decided(result, "a-gang")
    assert (found.pins, found.nominated) == ({}, False)


def test_pods_in_flight_and_quota_take_the_slack() -> None:
    wanted, nodes = demand("a", 2, required=RACK), racks(1, 4)
    foreign = ({GPU: 8, "pods": 1},)
    assert not decided(run_round(ClusterCapacity(), changes(nodes, asks(wanted)), NOW), "a-gang").nominated
    crowded = changes(nodes, asks(wanted), unbound=foreign)
    assert decided(run_round(ClusterCapacity(), crowded, NOW), "a-gang").nominated
    limited = changes(nodes, asks(wanted, has_quota=True))
    assert decided(run_round(ClusterCapacity(), limited, NOW), "a-gang").nominated


def test_preferred_level_is_a_preference() -> None:
    result = run_round(ClusterCapacity(), changes(racks(2, 8), asks(demand("a", 2, preferred=RACK))), NOW)
    found = decided(result, "a-gang")
    assert found.pins == {}
    assert found.near == {"a": {RACK: "r0"}}


def test_gang_that_does_not_fit_waits_with_the_reason() -> None:
    result = run_round(ClusterCapacity(), changes(racks(2, 2), asks(demand("a", 3, required=RACK))), NOW)
    message = waits(result, "a-gang")
    assert "even if the cluster were empty" in message
    assert "rack b0/r0" in message


def test_gang_that_does_not_fit_blocks_no_later_one() -> None:
    large, small = demand("a", 3, required=RACK, created="1"), demand("b", 1, required=RACK, created="2")
    result = run_round(ClusterCapacity(), changes(racks(1, 2), asks(large), asks(small)), NOW)
    assert waits(result, "a-gang")
    assert set(decided(result, "b-gang").nodes) == {PodSlot("b", 0)}


def test_priority_precedes_age() -> None:
    old, urgent = demand("a", 2, created="1"), demand("b", 2, created="2")
    gangs = (asks(old), asks(urgent, priority=10))
    result = run_round(ClusterCapacity(), changes(racks(1, 2), *gangs), NOW)
    assert decided(result, "b-gang")
    assert waits(result, "a-gang")


def test_lower_replica_precedes_if_both_are_equally_old() -> None:
    gangs = [asks(demand(name, 2, required=RACK, created="1")) for name in ("a-10", "a-2")]
    result = run_round(ClusterCapacity(), changes(racks(1, 2), *gangs), NOW)
    assert decided(result, "a-2-gang")
    assert waits(result, "a-10-gang")


def test_older_gang_precedes() -> None:
    gangs = (asks(demand("a", 2, created="2")), asks(demand("b", 2, created="1")))
    result = run_round(ClusterCapacity(), changes(racks(1, 2), *gangs), NOW)
    assert decided(result, "b-gang")
    assert waits(result, "a-gang")


def test_second_round_respects_reservations_of_the_first() -> None:
    capacity = ClusterCapacity()
    run_round(capacity, changes(racks(1, 2), asks(demand("a", 2))), NOW)
    assert waits(run_round(capacity, changes({}, asks(demand("b", 1))), NOW), "b-gang")
    after = replace(changes({}, asks(demand("b", 1))), gone=(demand("a", 2).gang,))
    assert decided(run_round(capacity, after, NOW), "b-gang")


def test_gang_displaces_pods_of_lower_priority() -> None:
    full = {name: used(each, 8, priority=0) for name, each in racks(1, 2).items()}
    urgent = asks(demand("a", 2, required=RACK), priority=5)
    found = decided(run_round(ClusterCapacity(), changes(full, urgent), NOW), "a-gang")
    assert (found.nominated, found.preempts, found.pins["a"][RACK]) == (True, True, "r0")
    equal = asks(demand("a", 2, required=RACK), priority=0)
    assert waits(run_round(ClusterCapacity(), changes(full, equal), NOW), "a-gang")


def test_recorded_pins_are_kept_while_a_pod_is_released() -> None:
    nodes, pins = racks(3, 8), {"a": {BLOCK: "b0", RACK: "r2"}}
    wanted = demand("a", 2, required=RACK, pinned=pins)
    assert decided(run_round(ClusterCapacity(), changes(nodes, asks(wanted)), NOW), "a-gang").pins == pins


def test_gang_moves_if_its_domain_is_full_and_no_pod_is_there() -> None:
    nodes = {name: used(each, 8) if name.startswith("r1") else each for name, each in racks(2, 4).items()}
    wanted = demand("a", 2, required=RACK, pinned={"a": {BLOCK: "b0", RACK: "r1"}})
    assert (
        decided(run_round(ClusterCapacity(), changes(nodes, asks(wanted)), NOW), "a-gang").pins["a"][RACK]
        == "r0"
    )
    released = replace(wanted, pods=(replace(wanted.pods[0], gated=False, name="a-0"), wanted.pods[1]))
    assert waits(run_round(ClusterCapacity(), changes(nodes, asks(released)), NOW), "a-gang")


def test_host_is_pinned_where_it_is_required() -> None:
    result = run_round(ClusterCapacity(), changes(racks(2, 4), asks(demand("a", 2, 4, required=HOST))), NOW)
    found = decided(result, "a-gang")
    (host,) = set(found.nodes.values())
    assert found.pins["a"][HOST] == host


def test_extra_pods_without_room_have_no_node() -> None:
    result = run_round(
        ClusterCapacity(), changes(racks(1, 2), asks(demand("a", 3, minimum=1, required=RACK))), NOW
    )
    assert set(decided(result, "a-gang").nodes) == {PodSlot("a", 0), PodSlot("a", 1)}


def test_fallback_is_tried_after_its_time() -> None:
    nodes = racks(2, 2)
    wanted = demand("a", 3, required=RACK)
    block = Fallback(1, 60.0, demand("a", 3, required=BLOCK).unit, LEVELS)
    wanted = replace(wanted, fallbacks=(block,))
    first = run_round(ClusterCapacity(), changes(nodes, asks(wanted)), NOW)
    (state,) = first.changed.values()
    assert state.waits
    assert first.next_at == NOW + 60
    early = run_round(ClusterCapacity(), changes(nodes, ObservedGang(state)), NOW + 59)
    assert all(each.waits for each in early.changed.values())
    found = decided(run_round(ClusterCapacity(), changes(nodes, ObservedGang(state)), NOW + 60), "a-gang")
    assert (found.attempt, found.pins["a"]) == (1, {BLOCK: "b0"})


def test_lost_pod_of_a_gang_that_breaks_its_level_is_replaced() -> None:
    bound = {
        0: WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False),
        1: WantedPod(PodSlot("a", 1), "a-1", "r1-h0", gated=False),
    }
    wanted = demand("a", 3, required=RACK, existing=bound)
    found = decided(run_round(ClusterCapacity(), changes(racks(2, 4), asks(wanted)), NOW), "a-gang")
    assert (set(found.nodes), found.pins) == ({PodSlot("a", 2)}, {})


def test_successor_has_node_of_predecessor_if_nodes_are_scarce() -> None:
    full = {name: used(each, 8) for name, each in racks(1, 2).items()}
    pods = {
        0: WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False),
        1: WantedPod(PodSlot("a", 1), predecessor="r0-h1"),
    }
    capacity = ClusterCapacity()
    wanted = demand("a", 2, required=RACK, existing=pods)
    result = run_round(capacity, changes(full, asks(wanted)), NOW)
    found = decided(result, "a-gang")
    assert (found.nodes, found.gated) == ({PodSlot("a", 1): "r0-h1"}, True)
    (state,) = result.changed.values()
    named = tuple(replace(pod, name=f"a-{pod.slot.number}") for pod in wanted.pods)
    state = replace(state, demand=replace(wanted, pods=named))
    shown = {"a-1": "r0-h1"}
    assert not run_round(capacity, changes(full, ObservedGang(state, nominations=shown)), NOW).changed
    gone = tuple(replace(pod, predecessor="") for pod in named)
    state = replace(state, demand=replace(wanted, pods=gone))
    free = {"r0-h1": racks(1, 2)["r0-h1"]}
    result = run_round(capacity, changes(free, ObservedGang(state, nominations=shown)), NOW)
    assert decided(result, "a-gang").released


def test_domain_with_room_for_declared_gangs_is_preferred() -> None:
    nodes = {name: used(each, 8) if name == "r0-h0" else each for name, each in racks(2, 3).items()}
    wanted = demand("a", 2, required=RACK)
    alone = decided(run_round(ClusterCapacity(), changes(nodes, asks(wanted)), NOW), "a-gang")
    assert alone.domain == ("b0", "r0"), "the tightest"
    later = replace(wanted, further=(demand("b", 1).unit,))
    found = decided(run_round(ClusterCapacity(), changes(nodes, asks(later)), NOW), "a-gang")
    assert found.domain == ("b0", "r1")


def test_minimum_of_each_gang_comes_before_extra_pods() -> None:
    older = demand("a", 4, minimum=2, created="2026-01-01T00:00:00Z")
    younger = demand("b", 4, minimum=2, created="2026-01-02T00:00:00Z")
    result = run_round(ClusterCapacity(), changes(racks(1, 5), asks(older), asks(younger)), NOW)
    assert [len(decided(result, name).nodes) for name in ("a-gang", "b-gang")] == [3, 2]


def test_extra_pods_get_nodes_once_the_minimum_is_bound() -> None:
    bound = WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False)
    waiting = WantedPod(PodSlot("a", 1), "a-1")
    wanted = demand("a", 2, minimum=1, existing={0: bound, 1: waiting})
    gang = ObservedGang(GangState(wanted, Assignment(nodes={})))
    capacity, full = ClusterCapacity(), {name: used(each, 8) for name, each in racks(1, 2).items()}
    (state,) = run_round(capacity, changes(full, gang), NOW).changed.values()
    assert state.decision == Assignment(nodes={})
    result = run_round(capacity, changes({"r0-h1": racks(1, 2)["r0-h1"]}, gang), NOW)
    assert decided(result, "a-gang").nodes == {PodSlot("a", 1): "r0-h1"}


def test_extra_pods_are_not_searched_for_if_nothing_is_free(monkeypatch) -> None:
    bound = WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False)
    wanted = demand("a", 2, minimum=1, existing={0: bound, 1: WantedPod(PodSlot("a", 1), "a-1")})
    capacity, full = ClusterCapacity(), {name: used(each, 8) for name, each in racks(1, 2).items()}
    first = ObservedGang(GangState(wanted, Assignment(nodes={})))
    (state,) = run_round(capacity, changes(full, first), NOW).changed.values()
    monkeypatch.setattr(decision, "solve", lambda *_: pytest.fail("a search"))
    assert not run_round(capacity, changes({}, ObservedGang(state)), NOW + 1).changed
    monkeypatch.undo()
    freed = changes({"r0-h1": racks(1, 2)["r0-h1"]}, ObservedGang(state))
    assert decided(run_round(capacity, freed, NOW + 2), "a-gang").nodes == {PodSlot("a", 1): "r0-h1"}


def test_changed_extra_pods_are_searched_for_again() -> None:
    bound = WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False)
    wanted = demand("a", 2, minimum=1, existing={0: bound, 1: WantedPod(PodSlot("a", 1), "a-1")})
    half = {name: used(each, 4) for name, each in racks(1, 2).items()}
    capacity, first = ClusterCapacity(), ObservedGang(GangState(wanted, Assignment(nodes={})))
    (state,) = run_round(capacity, changes(half, first), NOW).changed.values()
    smaller = demand("a", 2, 4, minimum=1, existing={pod.slot.number: pod for pod in wanted.pods})
    result = run_round(capacity, changes({}, ObservedGang(replace(state, demand=smaller))), NOW + 1)
    assert decided(result, "a-gang").nodes.keys() == {PodSlot("a", 1)}


def test_nodes_that_a_gang_gives_up_are_free_for_extra_pods() -> None:
    """B leaves two nodes when one of them is taken: the other one is free for the extra pod of A."""
    capacity, nodes = ClusterCapacity(), racks(2, 3)
    bound = {0: WantedPod(PodSlot("a", 0), "a-0", node="r0-h0")}
    pinned = {"a": {BLOCK: "b0", RACK: "r0"}}
    nodes["r0-h0"] = used(nodes["r0-h0"], 8)
    b = demand("b", 2, required=RACK, pinned={"b": {BLOCK: "b0", RACK: "r0"}})
    (b_state,) = run_round(capacity, changes(nodes, asks(b)), NOW).changed.values()
    assert isinstance(b_state.decision, Assignment)
    assert set(b_state.decision.nodes.values()) == {"r0-h1", "r0-h2"}
    a = demand("a", 2, minimum=1, required=RACK, existing=bound, pinned=pinned)
    a_state = GangState(replace(a, was_scheduled=True), Assignment(pins=pinned, nodes={}))
    gangs = [ObservedGang(a_state), ObservedGang(b_state)]
    refused = run_round(capacity, changes({}, *gangs), NOW).changed
    gangs = [replace(each, state=refused.get(each.state.demand.gang, each.state)) for each in gangs]
    assert gangs[0].state.extras_refused is not None
    taken = {"r0-h1": used(racks(2, 3)["r0-h1"], 8)}
    moved = run_round(capacity, changes(taken, *gangs), NOW)
    assert set(decided(moved, "b-gang").nodes.values()).isdisjoint({"r0-h1", "r0-h2"})
    gangs = [replace(each, state=moved.changed.get(each.state.demand.gang, each.state)) for each in gangs]
    found = gangs[0].state.decision
    if isinstance(found, Assignment) and not found.nodes:
        assert moved.next_at == NOW
        found = decided(run_round(capacity, changes({}, *gangs), NOW), "a-gang")
    assert isinstance(found, Assignment)
    assert found.nodes == {PodSlot("a", 1): "r0-h2"}


def test_nodes_that_a_gang_gives_up_are_free_for_older_gangs() -> None:
    """No event tells that they are free, so another round follows."""
    capacity, nodes = ClusterCapacity(), racks(1, 2)
    first = run_round(capacity, changes(nodes, asks(demand("young", 2, required=RACK, created="2"))), NOW)
    old = asks(demand("old", 1, created="1"))
    young = ObservedGang(next(iter(first.changed.values())))
    waiting = run_round(capacity, changes({}, old, young), NOW)
    cordoned, known = next(iter(nodes.items()))
    assert known.node is not None
    lost = {cordoned: ObservedNode(replace(known.node, unschedulable=True))}
    old = ObservedGang(next(iter(waiting.changed.values())))
    result = run_round(capacity, changes(lost, old, young), NOW)
    assert waits(result, "young-gang")
    assert result.next_at == NOW
    states = {name.name: state for name, state in result.changed.items()}
    gangs = (replace(old, state=states.get("old-gang", old.state)), ObservedGang(states["young-gang"]))
    assert set(decided(run_round(capacity, changes({}, *gangs), NOW), "old-gang").nodes.values()).isdisjoint(
        lost
    )


def test_search_that_was_stopped_is_repeated_with_more_work(monkeypatch) -> None:
    limits: list[int] = []

    def give_up(_index: object, _problem: object, work: int = 0, **_: object) -> GaveUp:
        limits.append(work)
        return GaveUp(work)

    monkeypatch.setattr(decision, "solve", give_up)
    first = run_round(ClusterCapacity(), changes(racks(1, 2), asks(demand("a", 2))), NOW)
    (state,) = first.changed.values()
    assert (state.waits, first.next_at) == (True, NOW + timing.PLACEMENT_RETRY)
    again = changes({}, ObservedGang(state))
    assert not run_round(ClusterCapacity(), again, NOW + 1).changed
    run_round(ClusterCapacity(), again, NOW + timing.PLACEMENT_RETRY)
    assert limits == [timing.PLACEMENT_WORK, timing.PLACEMENT_WORK * timing.PLACEMENT_RETRY_WORK]


def test_bound_pod_on_a_deleted_node_stops_no_round() -> None:
    lost = WantedPod(PodSlot("a", 0), "a-0", "deleted", gated=False)
    wanted = demand("a", 2, preferred=RACK, existing={0: lost})
    result = run_round(ClusterCapacity(), changes(racks(1, 2), asks(wanted)), NOW)
    assert set(decided(result, "a-gang").nodes) == {PodSlot("a", 1)}


def test_successor_is_not_placed_on_an_unusable_node() -> None:
    nodes = racks(1, 3)
    known = nodes["r0-h1"].node
    assert known is not None
    nodes["r0-h0"] = used(nodes["r0-h0"], 8)
    nodes["r0-h1"] = ObservedNode(replace(known, ready=False), {0: {GPU: 8, "pods": 1}})
    pods = {
        0: WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False),
        1: WantedPod(PodSlot("a", 1), predecessor="r0-h1"),
    }
    wanted = demand("a", 2, required=RACK, existing=pods)
    result = run_round(ClusterCapacity(), changes(nodes, asks(wanted, has_quota=True)), NOW)
    assert decided(result, "a-gang").nodes == {PodSlot("a", 1): "r0-h2"}


def test_waiting_gang_is_not_searched_for_if_nothing_is_free(monkeypatch) -> None:
    nodes = {name: used(each, 8) for name, each in racks(1, 2).items()}
    capacity = ClusterCapacity()
    (state,) = run_round(capacity, changes(nodes, asks(demand("a", 2))), NOW).changed.values()
    monkeypatch.setattr(decision, "solve", lambda *_: pytest.fail("a search"))
    assert not run_round(capacity, changes({}, ObservedGang(state)), NOW + 1).changed
    busier = {"r0-h0": used(racks(1, 2)["r0-h0"], 9)}
    assert not run_round(capacity, changes(busier, ObservedGang(state)), NOW + 2).changed
    monkeypatch.undo()
    assert decided(run_round(capacity, changes(racks(1, 2), ObservedGang(state)), NOW + 3), "a-gang")


def test_bug_in_the_decision_on_one_gang_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    bug = RecursionError("too deep")

    def fails_for_a(capacity: ClusterCapacity, wanted: Demand, *args: Any, **kwargs: Any) -> Any:
        capacity.reserve(wanted.gang, {})
        if wanted.gang.name == "a-gang":
            raise bug
        return decision.decide(capacity, wanted, *args, **kwargs)

    monkeypatch.setattr(next_state, "decide", fails_for_a)
    first, second = asks(demand("a", 1, created="1")), asks(demand("b", 1, created="2"))
    result = run_round(ClusterCapacity(), changes(racks(1, 4), first, second, hold_after=0.0), NOW)
    assert decided(result, "b-gang").nodes
    assert not decided(result, "b-gang").nominated, "the first gang does not wait for nodes"
    failed = result.changed[first.state.demand.gang]
    assert isinstance(failed.decision, Waiting)
    assert "RecursionError, see the operator's log" in failed.decision.message
    assert failed.retry_at == NOW + timing.PLACEMENT_RETRY
    assert result.unexpected == {first.state.demand.gang: bug}
    assert result.next_at == failed.retry_at
