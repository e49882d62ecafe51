"""What plans of replicas and the count of free slots read of placement: labels of nodes, and reservations."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from grove import timing
from grove.api.configuration.default_scheduler import DefaultSchedulerConfig
from grove.api.naming import well_known
from grove.api.types.kubernetes_objects import NodeSpec
from grove.api.types.pod import Pod
from grove.operator.caches.cluster_pods import ClusterPods
from grove.operator.caches.devices import Devices
from grove.operator.caches.nodes import Nodes
from grove.operator.keys import ReplicaKey
from grove.operator.observers.cluster_view import ClusterView
from grove.operator.observers.placement import PlacementState
from grove.plan.placement.assignment import Assignment, GangName, PodSlot, Waiting
from grove.plan.placement.demand import Demand
from grove.plan.placement.round import run_round
from grove.plan.placement.state import GangState, RoundResult
from tests.operator.cluster_builders import OURS, listed, listed_nodes, node, pod
from tests.plan.placement.gangs import GPU, demand, gated

KEY = ReplicaKey("ns", "wl", 0)
GATED = {"schedulingGates": [{"name": well_known.GANG_GATE}]}


def state(nodes: Nodes, pods: ClusterPods) -> PlacementState:
    return PlacementState(
        ClusterView(nodes, pods, Devices()),
        has_quota=lambda _: False,
        priority_class=lambda _: None,
        scheduler=lambda: None,
        settings=DefaultSchedulerConfig().placement_settings,
        clock=lambda: 1000.0,
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


async def test_nothing_is_decided_before_existing_gangs_have_reported() -> None:
    placement, other = (
        state(listed_nodes(node("a", unschedulable=False)), listed()),
        ReplicaKey("ns", "wl", 1),
    )
    placement.expect({KEY, other}, until=1010.0)
    assert placement.update(KEY, [demand("a", 1)])
    assert placement.changes() is None
    assert placement.update(other, ()), "the last one: now there is something to decide"
    assert placement.changes() is not None


async def test_silent_replicas_are_waited_for_with_a_limit() -> None:
    placement = state(listed_nodes(node("a", unschedulable=False)), listed())
    placement.expect({ReplicaKey("ns", "silent", 0)}, until=999.0)
    placement.update(KEY, [demand("a", 1)])
    assert placement.changes() is not None


async def test_released_gang_is_watched_until_it_was_complete() -> None:
    placement = state(listed_nodes(node("a", unschedulable=False)), listed())
    wanted = demand("a", 1)
    placement.update(KEY, [wanted])
    released = GangState(wanted, Assignment(nodes={wanted.pods[0].slot: "a"}))
    placement.record(RoundResult({wanted.gang: released}))
    assert placement.round_delay is not None
    complete = replace(wanted, was_scheduled=True)
    placement.update(KEY, [complete])
    assert placement.round_delay is None


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
