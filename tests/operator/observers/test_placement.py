"""What plans of replicas and the count of free slots read of placement: labels of nodes, and reservations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from grove import timing
from grove.api.configuration.default_scheduler import DefaultSchedulerConfig
from grove.api.formats import timestamps
from grove.api.naming import well_known
from grove.api.types.cluster.scheduling_pod import SchedulingPod
from grove.api.types.kubernetes_objects import NodeSpec
from grove.api.types.pod import Pod
from grove.operator.caches.cluster_pods import ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.caches.nodes import Nodes
from grove.operator.keys import ReplicaKey
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.operator.observers.placement import PlacementState
from grove.plan.placement.assignment import Assignment, GangName, PodSlot, Waiting
from grove.plan.placement.demand import Demand, FabricDomain, PackedDomain, WantedPod
from grove.plan.placement.pins import with_shapes
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import GangState, ObservedGang, RoundResult
from grove.topology.placement.model import PodShape
from grove.topology.placement.needs.devices import resource_of
from tests.operator.cluster_builders import OURS, listed, listed_nodes, node, pod
from tests.plan.placement.gangs import GPU, demand, gated

KEY = ReplicaKey("ns", "wl", 0)
NOW = "2026-01-01T00:00:20Z"
GATED = {"schedulingGates": [{"name": well_known.GANG_GATE}]}


def state(nodes: Nodes, pods: ClusterPods, now: float = 1000.0) -> PlacementState:
    return PlacementState(
        ClusterView(nodes, pods, Devices()),
        has_quota=lambda _: False,
        priority_class=lambda _: None,
        scheduler=lambda: None,
        settings=DefaultSchedulerConfig().placement_settings,
        clock=lambda: now,
    )


def on(name: str) -> Pod:
    return msgspec.convert({"metadata": {"name": f"p-{name}"}, "spec": {"nodeName": name}}, Pod)


def test_labels_of_nodes_with_pods_of_the_replica() -> None:
    placement = state(listed_nodes(node("a"), node("b")), listed())
    found = placement.of(KEY, [on("a"), on("gone"), on("")], ("zone",))
    assert found.node_labels == {"a": {"zone": "z"}}
    assert placement.of(KEY, [on("a")], ("rack",)).node_labels is None, "its label is not listed yet"


def decided(placement: PlacementState, wanted: Demand) -> None:
    placement.update(KEY, [wanted])
    changes = placement.changes()
    assert changes is not None
    placement.record(run_round(placement.capacity, changes, 1000.0))


def test_assigned_nodes_are_reserved_until_pods_are_bound() -> None:
    wanted = replace(gated(demand("a", 2, gpus=3)), gang=GangName("n", "a-gang"), levels=("zone",))
    hosts = [
        replace(node(name, pods="110", cpu="64", **{GPU: "8"}), spec=NodeSpec()) for name in ("h0", "h1")
    ]
    pods = listed(pod("a-0", labels=OURS, **GATED), pod("a-1", labels=OURS, **GATED))
    placement = state(listed_nodes(*hosts), pods)
    assert placement.reserved() == {}
    decided(placement, wanted)
    # Existing pods count by what they request as admitted.
    assert sum(amounts["cpu"] for amounts in placement.reserved().values()) == 2000
    pods.apply_event("MODIFIED", pod("a-0", 2, node="h0", labels=OURS))
    assert sum(amounts["cpu"] for amounts in placement.reserved().values()) == 1000
    assert not any(amounts[GPU] for amounts in placement.reserved().values())
    held = Waiting("no place", nodes={PodSlot("a", 1): "h1"})
    placement.record(RoundResult({wanted.gang: GangState(wanted, held)}))
    assert placement.reserved() == {"h1": {"cpu": 1000, "pods": 1}}
    placement.update(KEY, ())
    assert placement.reserved() == {}


def test_replica_is_decided_with_its_gangs() -> None:
    wanted = replace(demand("a", 2, gpus=3), gang=GangName("n", "a-gang"), levels=("zone",))
    host = replace(node("h0", pods="110", cpu="64", **{GPU: "8"}), spec=NodeSpec())
    placement = state(listed_nodes(host), listed())
    placement.update(KEY, [wanted])
    assert not placement.is_decided(KEY)
    decided(placement, wanted)
    assert placement.is_decided(KEY)
    placement.update(KEY, ())
    assert not placement.is_decided(KEY)


def blocked_until(placement: PlacementState) -> float | None:
    """When it is checked again whether gangs can be decided on; None: they can be now."""
    found = placement.changes()
    assert found is not None
    return found.blocked_until


async def test_nothing_is_decided_before_existing_gangs_have_reported() -> None:
    placement, other = (
        state(listed_nodes(node("a", unschedulable=False)), listed()),
        ReplicaKey("ns", "wl", 1),
    )
    placement.expect({KEY, other}, until=1010.0)
    assert placement.update(KEY, [demand("a", 1)])
    assert blocked_until(placement) == 1010.0, "an event of the cluster must not end the wait for ever"
    assert placement.update(other, ()), "the last one: now there is something to decide"
    assert blocked_until(placement) is None


async def test_incomplete_report_of_an_existing_gang_is_no_report() -> None:
    placement, other = (
        state(listed_nodes(node("a", unschedulable=False)), listed()),
        ReplicaKey("ns", "wl", 1),
    )
    placement.expect({other}, until=1010.0)
    assert not placement.update(other, (), complete=False)
    placement.update(KEY, [demand("a", 1)])
    assert blocked_until(placement) == 1010.0, "its volumes are not listed"
    assert placement.update(other, [demand("b", 1)])
    assert blocked_until(placement) is None


async def test_silent_replicas_are_waited_for_with_a_limit() -> None:
    placement = state(listed_nodes(node("a", unschedulable=False)), listed())
    placement.expect({ReplicaKey("ns", "silent", 0)}, until=999.0)
    placement.update(KEY, [demand("a", 1)])
    assert blocked_until(placement) is None


def test_cluster_that_is_not_listed_is_checked_again() -> None:
    placement = state(listed_nodes(node("a")), ClusterPods())
    assert placement.changes() is None, "no gang waits for it"
    placement.update(KEY, [demand("a", 1)])
    assert blocked_until(placement) == 1000.0 + timing.PLACEMENT_LIST_CHECK


def test_replicas_learn_why_the_cluster_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = ClusterPods()
    placement = state(listed_nodes(node("a")), pods)
    placement.update(KEY, [demand("a", 1)])
    assert (placement.of(KEY).delay, placement.newly_delayed()) == ("", set())
    monkeypatch.setattr(ClusterPods, "problem", "500 broken")
    assert (placement.of(KEY).delay, placement.of(KEY).problem) == ("pods: 500 broken", "")
    assert [placement.newly_delayed() for _ in range(2)] == [{KEY}, set()]
    monkeypatch.setattr(ClusterPods, "problem", "403 forbidden")
    assert placement.of(KEY).problem == "pods: 403 forbidden"
    assert [placement.newly_delayed() for _ in range(2)] == [{KEY}, set()]
    pods.replace((), "1")
    assert (placement.of(KEY).delay, placement.newly_delayed()) == ("", set())


async def test_released_gang_is_watched_until_it_was_complete() -> None:
    placement = state(listed_nodes(node("a", unschedulable=False)), listed())
    wanted = demand("a", 1)
    placement.update(KEY, [wanted])
    released = GangState(wanted, Assignment(nodes={wanted.pods[0].slot: "a"}))
    placement.record(RoundResult({wanted.gang: released}))
    assert placement.round_delay is not None
    assert placement.round_delay == timing.PLACEMENT_INTERVAL
    assert isinstance(released.decision, Assignment)
    preempting = replace(released, decision=replace(released.decision, preempting=True))
    placement.record(RoundResult({wanted.gang: preempting}))
    assert placement.round_delay == 0.0, "its other pods follow at once"
    complete = replace(wanted, was_scheduled=True)
    assert placement.update(KEY, [complete]), "its other pods are not released yet"
    assert placement.round_delay == 0.0
    placement.record(RoundResult({wanted.gang: released}))
    assert placement.round_delay is None


UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
ON_H0 = {"nominatedNodeName": "h0"}
VICTIM = pod("victim", node="h0", deletionTimestamp=NOW)
VICTIM_LEAVES_BY = timestamps.parse(NOW).timestamp()


@pytest.mark.parametrize(
    ("status", "others", "stuck", "refused", "victims_leave"),
    [
        ({}, (), False, False, False),
        (UNSCHEDULABLE, (), True, True, False),
        ({**UNSCHEDULABLE, **ON_H0}, (), False, True, False),
        ({**UNSCHEDULABLE, **ON_H0}, (pod("other", node="h0"),), True, True, False),
        ({**UNSCHEDULABLE, **ON_H0}, (VICTIM,), False, False, True),
    ],
    ids=["undecided", "no node", "room was made", "room was taken", "victims leave"],
)
def test_released_pod_is_stuck(
    status: dict[str, Any],
    others: tuple[SchedulingPod, ...],
    stuck: bool,
    refused: bool,
    victims_leave: bool,
) -> None:
    found = observed(listed(pod("a-0", labels=OURS, status=status), *others), VICTIM_LEAVES_BY)
    assert (found.stuck, found.refused) == (stuck, refused)
    assert (found.victims_leave_until > VICTIM_LEAVES_BY) == victims_leave


def test_victim_is_not_waited_for_without_a_limit() -> None:
    """It may be on a lost node, or have a finalizer."""
    pods = listed(pod("a-0", labels=OURS, status={**UNSCHEDULABLE, **ON_H0}), VICTIM)
    limit = VICTIM_LEAVES_BY + timing.TERMINATING_EXTRA_WAIT
    before, after = observed(pods, limit - 1), observed(pods, limit)
    assert before.victims_leave_until == after.victims_leave_until == limit
    assert (before.stuck, after.stuck) == (False, True)


def observed(pods: ClusterPods, now: float) -> ObservedGang:
    """A gang of one pod, on a node with room for one pod."""
    placement = state(listed_nodes(node("h0", cpu="1500m", pods="110")), pods, now)
    wanted = replace(gated(demand("a", 1)), gang=GangName("n", "a-gang"), levels=("zone",))
    placement.update(KEY, [wanted])
    changes = placement.changes()
    assert changes is not None
    return changes.gangs[0]


def test_victim_that_has_left_is_not_waited_for() -> None:
    pods = listed(VICTIM)
    view = ClusterView(listed_nodes(node("h0")), pods, Devices())
    assert view.leaving_until("h0") == VICTIM_LEAVES_BY + timing.TERMINATING_EXTRA_WAIT
    sooner = pod("victim", 2, node="h0", deletionTimestamp="2026-01-01T00:00:15Z")
    pods.apply_event("MODIFIED", sooner)
    assert view.leaving_until("h0") == VICTIM_LEAVES_BY - 5 + timing.TERMINATING_EXTRA_WAIT
    pods.apply_event("DELETED", sooner)
    assert view.leaving_until("h0") == 0.0


def test_successor_keeps_its_room_between_two_watches() -> None:
    old = pod("old", node="h0", cpu="1", labels=OURS)
    pods = listed(old)
    placement = state(listed_nodes(node("h0", cpu="1500m", pods="110")), pods)
    successor = WantedPod(PodSlot("a", 0), predecessor="h0", predecessor_name="old")
    wanted = replace(demand("a", 1, existing={0: successor}), gang=GangName("n", "gang"), levels=("zone",))

    def predecessor() -> str:
        changes = placement.changes()
        assert changes is not None
        return changes.gangs[0].state.demand.pods[0].predecessor

    placement.update(KEY, [wanted])
    assert predecessor() == "h0"
    gone = (replace(successor, predecessor="", predecessor_name=""),)
    placement.update(KEY, [replace(wanted, pods=gone)])
    assert predecessor() == "h0", "gone in the watch of our pods only"
    pods.apply_event("DELETED", old)
    assert predecessor() == ""
    placement.update(KEY, [wanted])
    assert predecessor() == "", "gone in the watch of all pods only"


def test_decision_is_late_after_a_while() -> None:
    times = iter((1000.0, 1001.0, 1000.0 + timing.SUCCESSOR_WAIT, 2000.0))
    placement = state(listed_nodes(), listed())
    placement._clock = lambda: next(times)
    wanted = replace(demand("a", 1), gang=GangName("n", "gang"), levels=("zone",))
    placement.update(KEY, [wanted])
    assert [placement.of(KEY).late, placement.of(KEY).late] == [False, True]
    placement.record(RoundResult({wanted.gang: GangState(wanted, Waiting("full"))}))
    assert not placement.of(KEY).late


def test_waiting_gang_is_recorded_once_its_predecessor_is_gone() -> None:
    old = pod("old", node="h0", labels=OURS)
    pods = listed(old, pod("a-0", labels=OURS, **GATED))
    placement = state(listed_nodes(node("h0", cpu="1", pods="110")), pods)
    successor = WantedPod(PodSlot("a", 0), "a-0", predecessor="h0", predecessor_name="old")
    wanted = replace(demand("a", 1, existing={0: successor}), gang=GangName("n", "gang"), levels=("zone",))
    placement.update(KEY, [wanted])
    pods.apply_event("DELETED", old)
    changes = placement.changes()
    assert changes is not None
    waiting = RoundResult({wanted.gang: replace(changes.gangs[0].state, decision=Waiting("full"))})
    assert placement.record(waiting) == {KEY}
    assert placement.of(KEY).decisions == {"gang": Waiting("full")}


def test_existing_pods_keep_the_devices_that_they_claim() -> None:
    """The requests of an admitted pod do not show them."""
    wanted = gated(demand("a", 1, gpus=0))
    (clique,) = wanted.unit.parts
    shape = PodShape({**clique.pods[0].shape.requests, resource_of("gpu"): 2})
    claiming = replace(clique, pods=(replace(clique.pods[0], shape=shape),))
    unit = replace(wanted.unit, parts=(claiming,))
    wanted = replace(wanted, unit=unit, gang=GangName("n", "a-gang"), levels=("zone",))
    placement = state(listed_nodes(), listed(pod("a-0", labels=OURS, **GATED)))
    placement.update(KEY, [wanted])
    changes = placement.changes()
    assert changes is not None
    (observed,) = changes.gangs
    assert observed.requests == {"a-0": {"cpu": 1000, "pods": 1, resource_of("gpu"): 2}}


def test_change_is_read_at_once_while_a_gang_is_nominated() -> None:
    placement = state(listed_nodes(node("a")), listed())
    wanted = replace(gated(demand("a", 1)), gang=GangName("n", "a-gang"))
    assert placement.round_delay is None
    placement.update(KEY, [wanted])
    assert placement.round_delay == 0.0, "not decided yet"
    nodes = {wanted.pods[0].slot: "a"}
    delays = []
    for decision in (
        Waiting("full"),
        Assignment(nodes=nodes, nominated=True),
        Assignment(nodes=nodes, nominated=True, released=True),
    ):
        placement.record(RoundResult({wanted.gang: GangState(wanted, decision)}))
        delays.append(placement.round_delay)
    assert delays == [timing.PLACEMENT_INTERVAL, 0.0, timing.PLACEMENT_INTERVAL]


def test_gang_that_ended_is_not_nominated() -> None:
    placement = state(listed_nodes(node("a")), listed())
    waiting, nominated = (
        replace(gated(demand(name, 1)), gang=GangName("n", f"{name}-gang")) for name in ("a", "b")
    )
    other = ReplicaKey("ns", "wl", 1)
    placement.update(KEY, [waiting])
    placement.update(other, [nominated])
    placement.record(RoundResult({waiting.gang: GangState(waiting, Waiting("full"))}))
    assert placement.round_delay == 0.0
    placement.update(other, [])
    assert placement.round_delay == timing.PLACEMENT_INTERVAL


def _read(placement: PlacementState) -> list[str]:
    """The gangs that a round reads, which changes nothing."""
    changes = placement.changes()
    assert changes is not None
    placement.record(run_round(placement.capacity, changes, 1000.0))
    return [gang.state.demand.gang.name for gang in changes.gangs]


def _started(*pods: SchedulingPod) -> tuple[PlacementState, ClusterPods]:
    """A gang of two pods whose pods may be bound, and which has been read since."""
    existing = {number: WantedPod(PodSlot("a", number), f"a-{number}", gated=False) for number in range(2)}
    wanted = replace(demand("a", 2, existing=existing), gang=GangName("n", "gang"), levels=("zone",))
    watched = listed(*pods)
    host = replace(node("h0", pods="110", cpu="64", **{GPU: "8"}), spec=NodeSpec())
    placement = state(listed_nodes(host), watched)
    placement.update(KEY, [wanted])
    assigned = Assignment(nodes={each.slot: "h0" for each in wanted.pods})
    placement.record(RoundResult({wanted.gang: GangState(wanted, assigned)}))
    assert _read(placement) == ["gang"]
    return placement, watched


def test_gang_being_bound_is_read_when_its_pods_change() -> None:
    placement, pods = _started(pod("a-0", labels=OURS), pod("a-1", labels=OURS))
    pods.apply_event("ADDED", pod("foreign", 2, node="h0"))
    assert _read(placement) == []
    assert placement.round_delay == timing.PLACEMENT_INTERVAL
    pods.apply_event("MODIFIED", pod("a-0", 3, node="h0", labels=OURS))
    assert _read(placement) == ["gang"]
    assert sum(amounts["cpu"] for amounts in placement.reserved().values()) == 1000


def test_complete_gang_is_no_reason_for_rounds() -> None:
    placement, pods = _started(pod("a-0", labels=OURS), pod("a-1", labels=OURS))
    (wanted,) = (each.demand for each in placement._states.values())
    placement.update(KEY, [replace(wanted, was_scheduled=True)])
    pods.apply_event("MODIFIED", pod("a-0", 2, node="h0", labels=OURS))
    assert _read(placement) == ["gang"]
    assert placement.round_delay is None


@pytest.mark.parametrize("status", [UNSCHEDULABLE, {**UNSCHEDULABLE, **ON_H0}], ids=["stuck", "preempting"])
def test_gang_with_unschedulable_pod_is_read_in_every_round(status: dict[str, Any]) -> None:
    placement, pods = _started(pod("a-0", labels=OURS), pod("a-1", labels=OURS, status=status))
    pods.apply_event("ADDED", pod("foreign", 2, node="h0"))
    assert [_read(placement) for _ in range(2)] == [["gang"], ["gang"]]


def test_gang_for_which_others_are_preempted_later_is_read_again() -> None:
    placement, pods = _started(pod("a-0", labels=OURS), pod("a-1", labels=OURS))
    pods.apply_event("MODIFIED", pod("a-0", 2, node="h0", labels=OURS))
    assert [_read(placement) for _ in range(3)] == [["gang"], ["gang"], []], "it is being bound"
    pods.apply_event("ADDED", pod("victim", 3, node="h0", deletionTimestamp="2026-01-01T00:00:50Z"))
    pods.apply_event("MODIFIED", pod("a-1", 4, labels=OURS, status={**UNSCHEDULABLE, **ON_H0}))
    assert [_read(placement) for _ in range(3)] == [["gang"]] * 3


def test_rounds_read_where_fabric_domains_have_pods() -> None:
    """Of bound pods, and of gangs that were decided on and are not bound yet."""
    domain, labels = FabricDomain("n", "team"), {**OURS, "grove.io/computedomain": "team"}
    hosts = [
        replace(node(name, pods="1", cpu="64", **{GPU: "8"}), spec=NodeSpec())  # no slack
        for name in ("h0", "h1", "h2")
    ]
    elsewhere = replace(hosts[2].metadata, labels={"zone": "y"})
    hosts[2] = replace(hosts[2], metadata=elsewhere)
    pods = listed(pod("other", node="h1", labels=labels), pod("a-0", labels=labels, **GATED))
    placement = state(listed_nodes(*hosts), pods)
    wanted = replace(gated(demand("a", 1)), gang=GangName("n", "gang"), levels=("zone",))
    packed = PackedDomain(domain, "zone", required=False)
    unit = with_shapes(wanted.unit, {"a": lambda shape: replace(shape, partitions=(0,))})
    wanted = replace(wanted, unit=unit, domains=(packed,))
    placement.update(KEY, [wanted])
    changes = placement.changes()
    assert changes is not None
    assert changes.domain_nodes == {domain: {"h1"}}
    assert changes.assigned_in_domains == {wanted.gang: {}}
    placement.record(run_round(placement.capacity, changes, 1000.0))
    joining = replace(wanted, gang=GangName("n", "joining"))
    (chosen,) = placement.of(KEY).decisions["gang"].nodes.values()
    assert placement.domain_nodes(joining) == {domain: {"h1", chosen}}
    assert placement.domain_nodes(wanted) == {domain: {"h1"}}
    placement.update(KEY, [replace(wanted, domains=(replace(packed, required=True),))])
    again = placement.changes()
    assert again is not None
    assert [gang.state.decision for gang in again.gangs] == [None], "the partition is required now"
    placement.record(run_round(placement.capacity, again, 1000.0))
    other = next(name for name in ("h0", "h2") if name != chosen)
    pods.apply_event("MODIFIED", pod("a-0", 2, node=other, labels=labels))
    assert placement.domain_nodes(joining) == {domain: {"h1", other}}, "where it is bound"
    placement.update(KEY, [])
    assert placement.domain_nodes(joining) == {domain: {"h1", other}}
