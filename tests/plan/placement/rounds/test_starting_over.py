"""Gangs without a place that are released in part, and gangs that start over and pause after a failure."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.demand import WantedPod
from grove.plan.placement.rounds.next_state import after_failure
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import GangState, ObservedGang
from tests.plan.placement.gangs import (
    BLOCK,
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


def test_unplaced_gang_becomes_visible_to_autoscalers() -> None:
    nodes = racks(1, 1)
    result = run_round(ClusterCapacity(), changes(nodes, asks(demand("a", 2)), visible_after=30.0), NOW)
    (state,) = result.changed.values()
    assert state.waits
    assert result.next_at == NOW + 30
    later = replace(changes(nodes, ObservedGang(state)), visible_after=30.0)
    found = decided(run_round(ClusterCapacity(), later, NOW + 30), "a-gang")
    assert (found.gated, found.in_part, found.pins, set(found.nodes.values())) == (False, True, {}, {""})


def test_gang_released_in_part_does_not_start_over() -> None:
    state = GangState(demand("a", 2), Assignment(nodes={PodSlot("a", 0): ""}, in_part=True), stuck_since=NOW)
    later = changes(racks(1, 1), ObservedGang(state, stuck=True))
    result = run_round(ClusterCapacity(), later, NOW + timing.INCOMPLETE_GANG_LIMIT)
    assert not decided(result, "a-gang").failed
    placed = replace(state, decision=Assignment(nodes={PodSlot("a", 0): "r0-h0"}))
    later = changes(racks(1, 1), ObservedGang(placed, stuck=True))
    assert decided(run_round(ClusterCapacity(), later, NOW + timing.INCOMPLETE_GANG_LIMIT), "a-gang").failed


def test_constrained_gang_is_never_released_in_part() -> None:
    nodes = racks(1, 1)
    wanted = demand("a", 2, required=RACK)
    state = GangState(wanted, Waiting("full"), since=NOW)
    later = changes(nodes, ObservedGang(state), visible_after=30.0)
    assert waits(run_round(ClusterCapacity(), later, NOW + 1000), "a-gang")


def test_gang_that_cannot_be_completed_fails_and_starts_over() -> None:
    nodes = racks(2, 4)
    first = run_round(ClusterCapacity(), changes(nodes, asks(demand("a", 2, required=RACK))), NOW)
    (state,) = first.changed.values()
    stuck = ObservedGang(state, stuck=True)
    (state,) = run_round(ClusterCapacity(), changes(nodes, stuck), NOW).changed.values()
    stuck = ObservedGang(state, stuck=True)
    assert not run_round(ClusterCapacity(), changes(nodes, stuck), NOW + 1).changed
    result = run_round(ClusterCapacity(), changes(nodes, stuck), NOW + timing.INCOMPLETE_GANG_LIMIT)
    found = decided(result, "a-gang")
    assert found.failed
    (state,) = result.changed.values()
    again = after_failure(state, state.demand, NOW)
    other = decided(run_round(ClusterCapacity(), changes(nodes, ObservedGang(again)), NOW), "a-gang")
    assert other.domain != found.domain
    assert other.nominated, "more carefully this time"


def test_gang_that_was_scheduled_does_not_start_over() -> None:
    nodes, wanted = racks(1, 4), replace(demand("a", 2), was_scheduled=True)
    (state,) = run_round(ClusterCapacity(), changes(nodes, asks(wanted)), NOW).changed.values()
    stuck = ObservedGang(replace(state, stuck_since=NOW - 500), stuck=True)
    result = run_round(ClusterCapacity(), changes(nodes, stuck), NOW)
    assert not decided(result, "a-gang").failed


def test_incomplete_gang_without_a_place_starts_over() -> None:
    nodes = {name: used(each, 8) for name, each in racks(1, 2).items()}
    bound = WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False)
    wanted = demand("a", 2, required=RACK, existing={0: bound}, pinned={"a": {BLOCK: "b0", RACK: "r0"}})
    first = run_round(ClusterCapacity(), changes(nodes, asks(wanted)), NOW)
    (state,) = first.changed.values()
    assert (state.waits, first.next_at) == (True, NOW + timing.HALF_BOUND_LIMIT)
    capacity = ClusterCapacity()
    capacity.observe(nodes)
    later = NOW + timing.HALF_BOUND_LIMIT
    result = run_round(capacity, changes({}, ObservedGang(state)), later)
    found = decided(result, "a-gang")
    assert (found.failed, found.domain) == (True, ("b0", "r0"))
    (state,) = result.changed.values()
    again = after_failure(state, demand("a", 2, required=RACK, pinned=wanted.pinned), later)
    elsewhere = run_round(capacity, changes(racks(2, 2), ObservedGang(again)), later)
    assert decided(elsewhere, "a-gang").domain == ("b0", "r1"), "other racks are not excluded"


@pytest.mark.parametrize(("visible_after", "failed"), [(None, True), (60.0, False)])
def test_incomplete_gang_may_have_been_released_in_part(visible_after: float | None, failed: bool) -> None:
    nodes = {name: used(each, 8) for name, each in racks(1, 2).items()}
    bound = WantedPod(PodSlot("a", 0), "a-0", "r0-h0", gated=False)
    capacity, wanted = ClusterCapacity(), asks(demand("a", 2, existing={0: bound}))
    first = run_round(capacity, changes(nodes, wanted, visible_after=visible_after), NOW)
    (state,) = first.changed.values()
    later = changes({}, ObservedGang(state), visible_after=visible_after)
    changed = run_round(capacity, later, NOW + timing.HALF_BOUND_LIMIT).changed
    decisions = [each.decision for each in changed.values()]
    assert [each for each in decisions if isinstance(each, Assignment) and each.failed] == decisions
    assert bool(decisions) == failed


def test_gang_that_may_use_any_node_pauses_after_a_failure() -> None:
    failed = GangState(demand("a", 2), Assignment(failed=True))
    again = after_failure(failed, failed.demand, NOW)
    capacity = ClusterCapacity()
    first = run_round(capacity, changes(racks(1, 4), ObservedGang(again)), NOW)
    assert "an earlier attempt failed there" in waits(first, "a-gang")
    pause, _ = timing.FAILED_DOMAIN_BACKOFF
    assert first.next_at == NOW + pause
    (state,) = first.changed.values()
    assert decided(run_round(capacity, changes({}, ObservedGang(state)), NOW + pause), "a-gang").nodes


def test_gang_is_not_released_in_part_while_it_pauses() -> None:
    failed = GangState(demand("a", 2), Assignment(failed=True), failures=2)
    (until,) = after_failure(failed, failed.demand, NOW).failed.values()
    capacity, visible = ClusterCapacity(), NOW + 30
    assert visible < until
    again = ObservedGang(after_failure(failed, failed.demand, NOW))
    first = run_round(capacity, changes(racks(1, 4), again, visible_after=30.0), NOW)
    assert first.next_at == until
    (state,) = first.changed.values()
    later = run_round(capacity, changes({}, ObservedGang(state), visible_after=30.0), visible)
    assert waits(later, "a-gang")
    assert later.next_at == until, "no round before the pause ends"
    (state,) = later.changed.values()
    found = decided(
        run_round(capacity, changes({}, ObservedGang(state), visible_after=30.0), until), "a-gang"
    )
    assert not found.in_part
    assert set(found.nodes.values()) < racks(1, 4).keys()


def test_full_cluster_is_released_in_part_after_the_pause() -> None:
    failed = GangState(demand("a", 2), Assignment(failed=True), failures=2)
    state = replace(after_failure(failed, failed.demand, NOW), since=NOW, decision=Waiting("no room"))
    (until,) = state.failed.values()
    full = {name: used(each, 8) for name, each in racks(1, 2).items()}
    result = run_round(ClusterCapacity(), changes(full, ObservedGang(state), visible_after=30.0), until)
    assert decided(result, "a-gang").in_part


def test_many_failures_are_no_error() -> None:
    state = GangState(demand("a", 1), Assignment(domain=("b0",), failed=True), failures=5000)
    assert after_failure(state, state.demand, NOW).failed == {("b0",): NOW + timing.FAILED_DOMAIN_BACKOFF[1]}
