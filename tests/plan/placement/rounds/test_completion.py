"""Released gangs: whole, or deleted whole in time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment, PodSlot
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.rounds.completion import completed, completion_limit
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import GangState, ObservedGang, Refused
from tests.plan.placement.gangs import changes, demand, gated

NOW = 1000.0
RELEASED = Assignment(nodes={PodSlot("a", 0): "h0", PodSlot("a", 1): "h1"}, nominated=True, released=True)


class Released:
    """A gang of two pods that was released."""

    def __init__(self, decision: Assignment = RELEASED) -> None:
        self.state = GangState(demand("a", 2), decision)

    def at(
        self,
        seconds: float,
        *,
        bound: str = "",
        stuck: bool = False,
        refused: bool = False,
        victims_leave_until: float = 0.0,
    ) -> bool:
        """Whether it has failed, so many seconds after the first time. `refused`: there is room for the pod
        that the scheduler refuses."""
        gang = ObservedGang(
            self.state,
            bound=frozenset(bound.split()),
            stuck=stuck,
            refused=stuck or refused,
            victims_leave_until=NOW + victims_leave_until,
        )
        self.state = completed(gang, NOW + seconds)
        assert isinstance(self.state.decision, Assignment)
        return self.state.decision.failed


def test_half_bound_gang_starts_over_soon() -> None:
    gang = Released()
    assert not gang.at(0, bound="a-0", stuck=True)
    assert completion_limit(gang.state) == NOW + timing.HALF_BOUND_LIMIT
    assert not gang.at(timing.HALF_BOUND_LIMIT - 0.1, bound="a-0", stuck=True)
    assert gang.at(timing.HALF_BOUND_LIMIT, bound="a-0", stuck=True)
    assert completion_limit(gang.state) is None


def test_gang_without_bound_pods_has_more_time() -> None:
    gang = Released()
    assert not gang.at(0, stuck=True)
    assert not gang.at(timing.INCOMPLETE_GANG_LIMIT - 0.1, stuck=True)
    assert gang.at(timing.INCOMPLETE_GANG_LIMIT, stuck=True)


def test_gang_pinned_to_hosts_starts_over_soon() -> None:
    gang = Released(replace(RELEASED, hosts={PodSlot("a", 0): "h0"}))
    assert not gang.at(0, stuck=True)
    assert gang.at(timing.HALF_BOUND_LIMIT, stuck=True)


def test_other_pods_follow_those_that_preempt() -> None:
    first, second = PodSlot("a", 0), PodSlot("a", 1)
    gang = Released(replace(RELEASED, hosts={first: "h0"}, preempting=True))
    gang.state = replace(gang.state, demand=gated(gang.state.demand))

    def released() -> list[bool]:
        assert isinstance(gang.state.decision, Assignment)
        return [gang.state.decision.releases(slot) for slot in (first, second)]

    gang.at(0)
    assert released() == [True, False]
    gang.at(1, bound="a-0")
    assert released() == [True, True]


def test_other_pods_do_not_wait_for_the_last_that_preempts() -> None:
    """Its pods that are bound hold their nodes without effect until it is whole."""
    slots = [PodSlot("a", i) for i in range(3)]
    nodes, hosts = ({slot: f"h{slot.index}" for slot in found} for found in (slots, slots[:2]))
    gang = Released(replace(RELEASED, nodes=nodes, hosts=hosts, preempting=True))
    gang.state = replace(gang.state, demand=gated(demand("a", 3)))
    gang.at(1, bound="a-0")
    assert isinstance(gang.state.decision, Assignment)
    assert gang.state.decision.releases(slots[2])


def test_other_pods_are_released_once_the_gang_was_scheduled() -> None:
    """Also if a pod beyond the minimum still waits for its host."""
    first, second = PodSlot("a", 0), PodSlot("a", 1)
    gang = Released(replace(RELEASED, hosts={first: "h0"}, preempting=True))
    gang.state = replace(gang.state, demand=replace(gated(gang.state.demand), was_scheduled=True))
    gang.at(0)
    assert isinstance(gang.state.decision, Assignment)
    assert gang.state.decision.releases(second)
    assert not gang.state.decision.hosts, "a replacement may go to any host"
    before = gang.state
    gang.at(1)
    assert gang.state is before


def test_first_bound_pod_starts_the_time() -> None:
    gang = Released()
    assert not gang.at(0, stuck=True)
    assert not gang.at(20, bound="a-0", stuck=True)
    assert not gang.at(20 + timing.HALF_BOUND_LIMIT - 0.1, bound="a-0", stuck=True)
    assert gang.at(20 + timing.HALF_BOUND_LIMIT, bound="a-0", stuck=True)


def test_time_goes_on_while_one_pod_after_another_is_stuck() -> None:
    gang = Released()
    assert not gang.at(0, bound="a-0", stuck=True)
    assert not gang.at(2, bound="a-0", stuck=False)
    assert gang.at(timing.HALF_BOUND_LIMIT, bound="a-0", stuck=True)


def test_binding_that_goes_on_has_no_limit() -> None:
    gang = Released()
    assert not gang.at(0, bound="a-0", stuck=True)
    assert not gang.at(50, bound="a-0", stuck=False)


def test_leaving_victims_are_waited_for() -> None:
    gang = Released()
    assert not gang.at(0, bound="a-0", stuck=True)
    assert not gang.at(50, bound="a-0", stuck=True, victims_leave_until=51)
    assert not gang.at(51, bound="a-0", stuck=True, victims_leave_until=51)
    assert gang.at(51 + timing.HALF_BOUND_LIMIT, bound="a-0", stuck=True, victims_leave_until=51)


def test_round_follows_when_victims_are_no_longer_waited_for() -> None:
    gang = ObservedGang(GangState(gated(demand("a", 2)), RELEASED), victims_leave_until=NOW + 5)
    assert run_round(ClusterCapacity(), changes({}, gang), NOW).next_at == NOW + 5
    assert run_round(ClusterCapacity(), changes({}, gang), NOW + 5).next_at is None


@pytest.mark.parametrize("bound", ["", "a-0"], ids=["none bound", "half bound"])
def test_gang_that_is_refused_despite_room_starts_over(bound: str) -> None:
    """Something else than room is missing, such as a volume: no event may ever follow."""
    gang, limit = Released(), timing.INCOMPLETE_GANG_LIMIT
    assert not gang.at(0, bound=bound, refused=True)
    assert completion_limit(gang.state) == NOW + limit
    assert not gang.at(limit - 0.1, bound=bound, refused=True)
    assert gang.at(limit, bound=bound, refused=True)
    assert completion_limit(gang.state) is None


def test_each_bound_pod_gives_the_refused_ones_more_time() -> None:
    gang, limit = Released(), timing.INCOMPLETE_GANG_LIMIT
    assert not gang.at(0, refused=True)
    assert not gang.at(20, bound="a-0", refused=True)
    assert not gang.at(limit, bound="a-0", refused=True)
    assert gang.at(20 + limit, bound="a-0", refused=True)


def test_lost_room_is_not_lost_time() -> None:
    """A pod takes the room that a preemption has made: the scheduler has the short time to find another."""
    gang = Released()
    assert not gang.at(0, bound="a-0", refused=True)
    assert not gang.at(10, bound="a-0", stuck=True)
    assert not gang.at(10 + timing.HALF_BOUND_LIMIT - 0.1, bound="a-0", stuck=True)
    assert gang.at(10 + timing.HALF_BOUND_LIMIT, bound="a-0", stuck=True)


def test_pod_that_is_bound_in_time_ends_the_refusal() -> None:
    gang, limit = Released(), timing.INCOMPLETE_GANG_LIMIT
    assert not gang.at(0, bound="a-0", refused=True)
    assert not gang.at(10, bound="a-0")
    assert not gang.at(limit, bound="a-0", refused=True), "refused again: another pod, or another reason"


def test_refusal_while_victims_leave_is_not_counted() -> None:
    gang, limit = Released(), timing.INCOMPLETE_GANG_LIMIT
    assert not gang.at(0, refused=True)
    assert not gang.at(limit, refused=True, victims_leave_until=limit + 1)
    assert not gang.at(limit + 1, refused=True, victims_leave_until=limit + 1)
    assert gang.at(2 * limit + 1, refused=True, victims_leave_until=limit + 1)


def test_limit_that_had_no_effect_causes_no_round() -> None:
    """The scheduler binds the last pod at its own pace: until then, rounds would follow without a pause."""
    gang = Released()
    gang.at(0, bound="a-0", stuck=True)
    later = NOW + timing.HALF_BOUND_LIMIT
    observed = ObservedGang(gang.state, bound=frozenset({"a-0"}))
    assert run_round(ClusterCapacity(), changes({}, observed), NOW + 1).next_at == later
    assert run_round(ClusterCapacity(), changes({}, observed), later).next_at is None


@pytest.mark.parametrize("exempt", ["was scheduled", "in part"])
def test_gang_that_may_be_incomplete_does_not_start_over(exempt: str) -> None:
    gang = Released(replace(RELEASED, in_part=exempt == "in part"))
    gang.state = replace(gang.state, demand=replace(demand("a", 2), was_scheduled=exempt == "was scheduled"))
    gang.state = replace(gang.state, stuck_since=NOW - 500, refused=Refused(NOW - 500, 1), half_bound=True)
    assert not gang.at(0, bound="a-0", stuck=True)
    assert (gang.state.stuck_since, gang.state.refused) == (0.0, None)
