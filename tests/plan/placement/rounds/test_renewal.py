"""Nominations are renewed when the scheduler may have lost them."""

from __future__ import annotations

import pytest

from grove import timing
from grove.plan.placement.assignment import Assignment, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.rounds.renewal import renewed
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import GangState
from tests.plan.placement.gangs import RACK, asks, changes, demand, racks

NOW = 1000.0
NODES = {PodSlot("a", 0): "r0-h0"}
NOMINATED = Assignment(nodes=NODES, nominated=True)


def renewal(state: GangState) -> str:
    assert state.decision is not None
    return state.decision.renewal


def state_of(decision: Assignment | Waiting) -> GangState:
    return GangState(demand("a", 1, required=RACK), decision)


@pytest.mark.parametrize("decision", [NOMINATED, Waiting("held", nodes=NODES)], ids=["nominated", "held"])
def test_nominations_are_renewed_for_another_scheduler(decision: Assignment | Waiting) -> None:
    first = renewed(state_of(decision), "one", NOW)
    assert renewal(first) == "one"
    assert renewed(first, "one", NOW + 100) == first
    assert renewal(renewed(first, "two", NOW + 100)) == "two"


def test_only_pods_that_are_still_gated_keep_nominations() -> None:
    """While others are preempted for a part of a gang, the rest stays nominated."""
    first, second = PodSlot("a", 0), PodSlot("a", 1)
    nodes = {first: "r0-h0", second: "r0-h1"}
    preempting = Assignment(nodes=nodes, nominated=True, released=True, hosts={first: "h"}, preempting=True)
    state = GangState(demand("a", 2, required=RACK), preempting)
    assert state.nominations == {second: "r0-h1"}
    assert renewal(renewed(state, "one", NOW)) == "one"
    assert [preempting.nominated_node(slot) for slot in nodes] == ["", "r0-h1"]


def test_nominations_for_unknown_scheduler_are_renewed_by_time() -> None:
    first = renewed(state_of(NOMINATED), "", NOW)
    assert renewal(first) == "1970-01-01T00:16:40Z"
    assert renewed(first, "", NOW + timing.NOMINATION_RENEWAL - 1) == first
    assert renewal(renewed(first, "", NOW + timing.NOMINATION_RENEWAL)) == "1970-01-01T00:16:45Z"


@pytest.mark.parametrize(
    ("decision", "scheduler"),
    [
        (Waiting("full"), "one"),
        (Assignment(nodes=NODES), "one"),
        (Assignment(nodes=NODES, nominated=True, released=True), "one"),
        (NOMINATED, None),
    ],
    ids=["waits", "slack", "released", "scheduler keeps nominations"],
)
def test_nothing_is_renewed_without_need(decision: Assignment | Waiting, scheduler: str | None) -> None:
    state = state_of(decision)
    assert renewed(state, scheduler, NOW) is state


def test_next_round_is_in_time_for_a_renewal() -> None:
    wanted = asks(demand("a", 2, required=RACK))
    result = run_round(ClusterCapacity(), changes(racks(1, 3), wanted, scheduler=""), NOW)
    (state,) = result.changed.values()
    assert renewal(state)
    assert result.next_at == NOW + timing.NOMINATION_RENEWAL
    known = run_round(ClusterCapacity(), changes(racks(1, 3), wanted, scheduler="one"), NOW)
    assert known.next_at is None
