"""Nominated gangs: when they are released, and which of their pods are pinned to hosts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.demand import WantedPod
from grove.plan.placement.pins import with_shapes
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import ClusterChanges, GangState, ObservedGang
from grove.topology.placement.model import Toleration
from tests.plan.placement.gangs import (
    RACK,
    asks,
    changes,
    decided,
    demand,
    gated,
    racks,
    used,
)

NOW = 1000.0


class Nominated:
    """A gang of two pods that was nominated, on two of three hosts."""

    def __init__(self) -> None:
        self.capacity = ClusterCapacity()
        first = run_round(self.capacity, changes(racks(1, 3), asks(demand("a", 2, required=RACK))), NOW)
        (self.state,) = first.changed.values()
        self.state = replace(self.state, demand=gated(self.state.demand))
        decision = self.state.decision
        assert isinstance(decision, Assignment)
        self.nominations = {f"a-{slot.number}": node for slot, node in decision.nodes.items()}

    def round(
        self, nominations: dict[str, str] | None = None, in_flight: str = "", now: float = NOW, **more: object
    ) -> GangState:
        shown = self.nominations if nominations is None else nominations
        gang = ObservedGang(self.state, nominations=shown, in_flight=frozenset(in_flight.split()))
        round_changes = ClusterChanges({}, (gang,), **more)  # type: ignore[arg-type]
        self.state = run_round(self.capacity, round_changes, now).changed.get(
            self.state.demand.gang, self.state
        )
        return self.state

    @property
    def released(self) -> bool:
        decision = self.state.decision
        return isinstance(decision, Assignment) and decision.released


def test_release_waits_for_all_nominations() -> None:
    gang = Nominated()
    gang.round({"a-0": gang.nominations["a-0"]})
    assert not gang.released
    gang.round()
    assert gang.released


def test_release_waits_for_pods_in_flight() -> None:
    gang = Nominated()
    gang.round(in_flight="x y")
    assert not gang.released
    gang.round(in_flight="y z")
    assert not gang.released
    gang.round(in_flight="z")
    assert gang.released, "z was created after the nominations"


def test_backlog_is_waited_for_with_a_limit() -> None:
    """What is undecided after so long is not being bound: the scheduler will count the nominations."""
    gang = Nominated()
    gang.round(in_flight="x")
    assert gang.state.backlog is not None
    gang.round(in_flight="x", now=NOW + timing.NOMINATION_LIMIT - 1)
    assert not gang.released
    gang.round(in_flight="x", now=NOW + timing.NOMINATION_LIMIT)
    assert gang.released


def test_backlog_that_shrinks_is_waited_for() -> None:
    """Its binds wait for the rate limit of the scheduler's client."""
    gang = Nominated()
    gang.round(in_flight="x y")
    gang.round(in_flight="y", now=NOW + timing.NOMINATION_LIMIT - 1)
    gang.round(in_flight="y", now=NOW + 2 * timing.NOMINATION_LIMIT - 2)
    assert not gang.released
    gang.round(in_flight="y", now=NOW + 2 * timing.NOMINATION_LIMIT - 1)
    assert gang.released


def test_backlog_that_others_delete_one_by_one_has_a_limit() -> None:
    gang = Nominated()
    pods = [f"p{number}" for number in range(20)]
    for number in range(11):
        now = NOW + number * (timing.NOMINATION_LIMIT - 2)
        gang.round(in_flight=" ".join(pods[number:]), now=now)
        assert gang.released == (now >= NOW + timing.BACKLOG_LIMIT)


def test_conflict_before_release_is_decided_again() -> None:
    gang = Nominated()
    before = dict(gang.nominations)
    taken = next(iter(before.values()))
    nodes = {taken: used(racks(1, 3)[taken], 8)}
    observed = ObservedGang(gang.state, nominations=before)
    result = run_round(gang.capacity, changes(nodes, observed), NOW)
    found = decided(result, "a-gang")
    assert taken not in found.nodes.values()
    assert found.gated


def test_release_waits_for_outdated_nominations_of_others() -> None:
    """Another gang was nominated to the same node before, and waits now."""
    gang = Nominated()
    node = gang.nominations["a-0"]
    other = ObservedGang(
        GangState(gated(demand("b", 3)), Waiting("full"), since=NOW), nominations={"b-0": node}
    )

    def released(nominations: dict[str, str]) -> bool:
        seen = ObservedGang(gang.state, nominations=gang.nominations)
        result = run_round(
            gang.capacity, changes({}, seen, replace(other, nominations=nominations)), NOW
        ).changed
        found = result.get(gang.state.demand.gang, gang.state).decision
        return isinstance(found, Assignment) and found.released

    assert not released({"b-0": node})
    assert released({})


def test_existing_nominations_lead_to_another_round() -> None:
    """Another process has nominated the pods to the same nodes: no event follows."""
    gang = Nominated()
    again = ObservedGang(GangState(gang.state.demand), nominations=gang.nominations)
    result = run_round(ClusterCapacity(), changes(racks(1, 3), again), NOW)
    assert (decided(result, "a-gang").gated, result.next_at) == (True, NOW)
    other = replace(again, nominations={})
    assert run_round(ClusterCapacity(), changes(racks(1, 3), other), NOW).next_at is None


def test_reservation_follows_nomination_by_the_scheduler() -> None:
    gang = Nominated()
    released = replace(gang.state, decision=replace(gang.state.decision, released=True))
    (free,) = set(racks(1, 3)) - set(gang.nominations.values())
    moved = ObservedGang(released, nominations={**gang.nominations, "a-0": free})
    result = run_round(gang.capacity, changes({}, moved, asks(demand("b", 1))), NOW)
    assert set(decided(result, "b-gang").nodes.values()) == {gang.nominations["a-0"]}


def test_preempting_gang_counts_only_pods_that_stay() -> None:
    """Its nodes are over-committed by pods of a lower priority until the scheduler has preempted them."""
    full = {name: used(each, 8, priority=0) for name, each in racks(1, 2).items()}
    capacity = ClusterCapacity()
    first = run_round(capacity, changes(full, asks(demand("a", 2), priority=5)), NOW)
    (state,) = first.changed.values()
    state = replace(state, demand=gated(state.demand))
    assert isinstance(state.decision, Assignment)
    shown = {f"a-{slot.number}": node for slot, node in state.decision.nodes.items()}
    seen = ObservedGang(state, nominations=shown, priority=5)
    found = decided(run_round(capacity, changes({}, seen), NOW), "a-gang")
    assert found.released
    assert found.hosts == found.nodes, "pods are preempted there, and not on other nodes"


@pytest.mark.parametrize("grouped", [False, True])
def test_only_occupied_nodes_are_pinned(grouped: bool) -> None:
    """A pod whose node is free may go elsewhere if it is taken. It follows later, unless the pods form a
    group, of which the scheduler considers none before all are released."""
    nodes = racks(1, 2)
    nodes["r0-h0"] = used(nodes["r0-h0"], 8, priority=0)
    capacity = ClusterCapacity()
    (state,) = run_round(capacity, changes(nodes, asks(demand("a", 2), priority=5)), NOW).changed.values()
    state = replace(state, demand=replace(gated(state.demand), grouped=grouped))
    assert isinstance(state.decision, Assignment)
    shown = {f"a-{slot.number}": node for slot, node in state.decision.nodes.items()}
    found = decided(
        run_round(capacity, changes({}, ObservedGang(state, nominations=shown, priority=5)), NOW), "a-gang"
    )
    assert (set(found.hosts.values()), found.preempting) == ({"r0-h0"}, not grouped)
    assert all(map(found.releases, found.nodes)) == grouped


def test_pod_beyond_the_minimum_is_not_pinned_to_a_host() -> None:
    nodes = {name: used(each, 8, priority=0) for name, each in racks(1, 2).items()}
    capacity, wanted = ClusterCapacity(), demand("a", 2, minimum=1)
    (state,) = run_round(capacity, changes(nodes, asks(wanted, priority=5)), NOW).changed.values()
    state = replace(state, demand=gated(state.demand))
    assert isinstance(state.decision, Assignment)
    shown = {f"a-{slot.number}": node for slot, node in state.decision.nodes.items()}
    assert len(shown) == 2
    seen = ObservedGang(state, nominations=shown, priority=5)
    found = decided(run_round(capacity, changes({}, seen), NOW), "a-gang")
    assert set(found.hosts) == {PodSlot("a", 0)}


@pytest.mark.parametrize("grouped", [False, True])
def test_pod_of_a_group_created_later_is_not_waited_for(grouped: bool) -> None:
    """Pods beyond the minimum of a group are created once the minimum is scheduled."""
    first = WantedPod(PodSlot("a", 0), "a-0")
    wanted = replace(demand("a", 2, minimum=1, required=RACK, existing={0: first}), grouped=grouped)
    capacity = ClusterCapacity()
    (state,) = run_round(capacity, changes(racks(1, 2), asks(wanted)), NOW).changed.values()
    assert isinstance(state.decision, Assignment)
    assert state.decision.gated
    assert len(state.decision.nodes) == 2
    unseen = run_round(capacity, changes({}, ObservedGang(state)), NOW)
    assert not unseen.changed, "the pod of the minimum has no nomination yet"
    seen = ObservedGang(state, nominations={"a-0": state.decision.nodes[first.slot]})
    result = run_round(capacity, changes({}, seen), NOW)
    assert bool(result.changed) == grouped
    assert not grouped or decided(result, "a-gang").released


def test_replacement_in_a_running_gang_is_not_pinned_to_a_host() -> None:
    full = {name: used(each, 8, priority=0) for name, each in racks(1, 2).items()}
    wanted = replace(gated(demand("a", 1)), was_scheduled=True)
    capacity = ClusterCapacity()
    (state,) = run_round(capacity, changes(full, asks(wanted, priority=5)), NOW).changed.values()
    assert isinstance(state.decision, Assignment)
    shown = {f"a-{slot.number}": node for slot, node in state.decision.nodes.items()}
    seen = ObservedGang(state, nominations=shown, priority=5)
    found = decided(run_round(capacity, changes({}, seen), NOW), "a-gang")
    assert (found.released, found.hosts) == (True, {})


def test_cordoned_node_is_replaced_before_the_release() -> None:
    gang = Nominated()
    taken = next(iter(gang.nominations.values()))
    known = racks(1, 3)[taken].node
    assert known is not None
    nodes = {taken: ObservedNode(replace(known, unschedulable=True))}
    result = run_round(
        gang.capacity, changes(nodes, ObservedGang(gang.state, nominations=gang.nominations)), NOW
    )
    assert taken not in decided(result, "a-gang").nodes.values()


def test_gang_that_tolerates_a_cordon_is_released() -> None:
    """It was decided on again in every round, and never released."""
    nodes = racks(1, 2)
    known = nodes["r0-h0"].node
    assert known is not None
    nodes["r0-h0"] = ObservedNode(replace(known, unschedulable=True))
    wanted = demand("a", 2, required=RACK)
    tolerant = replace(wanted.unit.parts[0].pods[0].shape, tolerations=(Toleration(operator="Exists"),))
    unit = with_shapes(wanted.unit, {"a": lambda _: tolerant})
    capacity = ClusterCapacity()
    (state,) = run_round(capacity, changes(nodes, asks(replace(wanted, unit=unit))), NOW).changed.values()
    state = replace(state, demand=gated(state.demand))
    assert isinstance(state.decision, Assignment)
    shown = {f"a-{slot.number}": node for slot, node in state.decision.nodes.items()}
    assert set(shown.values()) == {"r0-h0", "r0-h1"}
    result = run_round(capacity, changes({}, ObservedGang(state, nominations=shown)), NOW)
    assert decided(result, "a-gang").released


def test_gang_that_was_scaled_in_is_released() -> None:
    gang = Nominated()
    gang.state = replace(gang.state, demand=replace(gang.state.demand, pods=gang.state.demand.pods[:1]))
    gang.round()
    assert gang.released
