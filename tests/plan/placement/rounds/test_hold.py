"""Nodes that are held for gangs that wait for long, and gangs that give way to others."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from grove import timing
from grove.plan.placement.assignment import Assignment, PodSlot, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity, ObservedNode
from grove.plan.placement.demand import Demand, WantedPod
from grove.plan.placement.rounds import hold
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import Hold, ObservedGang
from tests.plan.placement.gangs import BLOCK, RACK, changes, demand, racks, used
from tests.plan.placement.rounds.clusters import AFTER, NOW, Cluster, full, shown_nominations


def test_nodes_are_held_after_the_delay() -> None:
    cluster = Cluster(full(racks(1, 2)), demand("a", 2, required=RACK))
    cluster.round(NOW)
    assert cluster.held("a-gang") == set()
    assert cluster.result.next_at == NOW + AFTER
    cluster.round(NOW + AFTER - 1)
    assert cluster.held("a-gang") == set()
    cluster.round(NOW + AFTER)
    assert cluster.held("a-gang") == {"r0-h0", "r0-h1"}
    decision = cluster.states["a-gang"].decision
    assert isinstance(decision, Waiting)
    assert decision.message.startswith("held: waits for room on r0-h0, r0-h1; no place now")
    assert cluster.result.next_at == NOW + AFTER + timing.HOLD_LIMIT


def test_room_that_gets_free_goes_to_the_gang_that_holds_it() -> None:
    nodes = racks(1, 2)
    cluster = Cluster(full(nodes), demand("a", 2, required=RACK, created="1"))
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    cluster.add(demand("b", 1, created="2"))
    cluster.round(NOW + AFTER, {"r0-h0": nodes["r0-h0"]})
    assert cluster.states["b-gang"].waits, "the node is held"
    cluster.round(NOW + AFTER, {"r0-h1": nodes["r0-h1"]})
    assert cluster.assigned("a-gang").gated
    cluster.round(NOW + AFTER, {}, nominations="a-gang")
    assert cluster.assigned("a-gang").released
    assert cluster.states["a-gang"].hold is None


def test_without_a_hold_smaller_gangs_take_the_room() -> None:
    nodes = racks(1, 2)
    cluster = Cluster(full(nodes), demand("a", 2, required=RACK, created="1"))
    cluster.round(NOW)
    cluster.add(demand("b", 1, created="2"))
    cluster.round(NOW + 1, {"r0-h0": nodes["r0-h0"]})
    assert cluster.assigned("b-gang")


def test_domain_with_the_most_room_is_held() -> None:
    cluster = Cluster(full(racks(3, 3), "r1-h2"), demand("a", 2, required=RACK))
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert cluster.held("a-gang") == {"r1-h2", "r1-h0"}, "the free node, and one more"


def test_gang_that_fits_into_no_empty_domain_never_holds() -> None:
    cluster = Cluster(full(racks(1, 2)), demand("a", 3, required=RACK))
    cluster.round(NOW)
    cluster.round(NOW + 100 * AFTER)
    assert cluster.held("a-gang") == set()


def test_one_gang_holds_a_domain_and_then_the_next() -> None:
    gangs = [demand(name, 2, required=RACK, created=name) for name in "abc"]
    cluster = Cluster(full(racks(1, 2)), *gangs)
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    holding = []
    for turn in range(4):
        cluster.round(NOW + AFTER + turn * timing.HOLD_LIMIT)
        cluster.round(NOW + AFTER + (turn + 1) * timing.HOLD_LIMIT - 1)
        holding.append([name for name in cluster.states if cluster.held(name)])
    assert holding == [["a-gang"], ["b-gang"], ["c-gang"], ["a-gang"]]


def test_gangs_hold_different_domains() -> None:
    gangs = [demand(name, 2, required=RACK, created=name) for name in "abc"]
    cluster = Cluster(full(racks(2, 2)), *gangs)
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert cluster.held("a-gang") == {"r0-h0", "r0-h1"}
    assert cluster.held("b-gang") == {"r1-h0", "r1-h1"}
    assert cluster.held("c-gang") == set()


def test_gang_without_constraint_holds_nodes_of_the_cluster() -> None:
    cluster = Cluster(full(racks(2, 2), "r1-h1"), demand("a", 2))
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert len(cluster.held("a-gang")) == 2
    assert "r1-h1" in cluster.held("a-gang")


def test_nodes_reserved_for_other_gangs_are_not_held() -> None:
    nodes = {name: used(each, 4) for name, each in racks(1, 1).items()}
    gangs = demand("a", 1, 4, required=RACK, created="2"), demand("b", 1, 4, created="1")
    cluster = Cluster(nodes, *gangs)
    cluster.round(NOW)
    assert cluster.assigned("b-gang").gated
    cluster.round(NOW + AFTER)
    assert cluster.held("a-gang") == set(), "it would be in the way of b"


def test_rest_of_a_held_domain_is_not_held() -> None:
    gangs = [demand(name, 2, required=RACK, created=name) for name in "ab"]
    cluster = Cluster(full(racks(1, 4)), *gangs)
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert len(cluster.held("a-gang")) == 2
    assert cluster.held("b-gang") == set()


def test_holds_of_domain_and_cluster_have_different_nodes() -> None:
    gangs = demand("a", 1, required=RACK, created="1"), demand("b", 1, created="2")
    cluster = Cluster(full(racks(1, 2)), *gangs)
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert cluster.held("a-gang") | cluster.held("b-gang") == {"r0-h0", "r0-h1"}


def test_least_used_nodes_are_held() -> None:
    nodes = full(racks(1, 3))
    nodes["r0-h1"] = used(racks(1, 3)["r0-h1"], 2)
    cluster = Cluster(nodes, demand("a", 1, required=RACK))
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert cluster.held("a-gang") == {"r0-h1"}


def test_hold_ends_with_its_nodes() -> None:
    nodes = full(racks(2, 1))
    cluster = Cluster(nodes, demand("a", 1, required=RACK))
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert cluster.held("a-gang") == {"r0-h0"}
    gone = nodes["r0-h0"].node
    assert gone is not None
    cluster.round(NOW + AFTER, {"r0-h0": ObservedNode(replace(gone, unschedulable=True))})
    assert cluster.held("a-gang") == {"r1-h0"}


def test_replacement_goes_before_a_hold() -> None:
    nodes = racks(1, 2)
    cluster = Cluster(full(nodes), demand("a", 2, required=RACK, created="1"))
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    runs = WantedPod(PodSlot("b", 1), "b-1", "r0-h1", gated=False)
    pins = {"b": {BLOCK: "b0", RACK: "r0"}}
    cluster.add(gated_first(demand("b", 2, required=RACK, existing={1: runs}, pinned=pins, created="2")))
    cluster.round(NOW + AFTER, {"r0-h0": nodes["r0-h0"]})
    assert cluster.assigned("b-gang").nodes == {PodSlot("b", 0): "r0-h0"}
    assert cluster.assigned("b-gang").gated
    before = {name: shown_nominations(state) for name, state in cluster.states.items()}
    held = {f"a-{number}": node for number, node in enumerate(("r0-h0", "r0-h1"))}
    cluster.round(NOW + AFTER, {})
    assert "r0-h0" not in cluster.held("a-gang")

    def release(nominations: Mapping[str, Mapping[str, str]], now: float) -> Assignment:
        gangs = [ObservedGang(state, nominations=nominations[name]) for name, state in cluster.states.items()]
        result = run_round(cluster.capacity, changes({}, *gangs, hold_after=AFTER), now)
        cluster.states |= {name.name: state for name, state in result.changed.items()}
        return cluster.assigned("b-gang")

    now = NOW + AFTER
    assert not release({"a-gang": held, "b-gang": before["b-gang"]}, now).released, "a is in its way"
    assert release({"a-gang": {}, "b-gang": before["b-gang"]}, now).released


def gated_first(wanted: Demand) -> Demand:
    """The same demand once its first pod exists and is gated."""
    first = replace(wanted.pods[0], name="b-0")
    return replace(wanted, pods=(first, *wanted.pods[1:]))


def test_new_gang_does_not_go_before_a_hold() -> None:
    nodes = racks(1, 2)
    cluster = Cluster(full(nodes), demand("a", 2, required=RACK, created="2"))
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    cluster.add(demand("b", 1, required=RACK, created="1"))
    cluster.round(NOW + AFTER, {"r0-h0": nodes["r0-h0"]})
    assert cluster.states["b-gang"].waits
    assert cluster.held("a-gang") == {"r0-h0", "r0-h1"}


def test_nominated_gang_gives_way_to_a_higher_priority() -> None:
    cluster = Cluster(racks(1, 2), demand("a", 2, required=RACK, created="1"))
    cluster.round(NOW)
    assert cluster.assigned("a-gang").gated
    cluster.add(demand("b", 1, required=RACK, created="2"), priority=5)
    cluster.round(NOW)
    assert cluster.assigned("b-gang").nodes
    assert cluster.states["a-gang"].waits


def test_nominated_gang_gives_way_to_no_equal_priority() -> None:
    cluster = Cluster(racks(1, 2), demand("a", 2, required=RACK, created="2"))
    cluster.round(NOW)
    cluster.add(demand("b", 1, required=RACK, created="1"))
    cluster.round(NOW)
    assert cluster.states["b-gang"].waits
    assert cluster.assigned("a-gang").gated


def test_nominated_gang_gives_way_before_pods_are_preempted() -> None:
    nodes = racks(2, 1)
    nodes["r0-h0"] = used(nodes["r0-h0"], 8)
    cluster = Cluster(nodes, demand("a", 1, required=RACK, created="1"))
    cluster.round(NOW)
    assert set(cluster.assigned("a-gang").nodes.values()) == {"r1-h0"}
    cluster.add(demand("b", 1, required=RACK, created="2"), priority=5)
    cluster.round(NOW)
    assert set(cluster.assigned("b-gang").nodes.values()) == {"r1-h0"}
    assert cluster.states["a-gang"].waits


def test_gang_is_not_displaced_where_there_is_other_room() -> None:
    cluster = Cluster(racks(2, 1), demand("a", 1, required=RACK, created="1"))
    cluster.round(NOW)
    cluster.add(demand("b", 1, required=RACK, created="2"), priority=5)
    cluster.round(NOW)
    assert cluster.assigned("a-gang").nodes
    assert cluster.assigned("b-gang").nodes


def test_released_gang_does_not_give_way() -> None:
    cluster = Cluster(racks(1, 2), demand("a", 2, required=RACK, created="1"))
    cluster.round(NOW)
    cluster.round(NOW, {}, nominations="a-gang")
    assert cluster.assigned("a-gang").released
    cluster.add(demand("b", 1, required=RACK, created="2"), priority=5)
    cluster.round(NOW)
    assert cluster.states["b-gang"].waits


def test_searches_for_holds_go_on_in_the_next_round(monkeypatch) -> None:
    monkeypatch.setattr(timing, "HOLD_SEARCHES", 2)
    gangs = [demand(name, 1, gpus, required=RACK, created=name) for gpus, name in enumerate("abc", 1)]
    cluster = Cluster(full(racks(3, 1)), *gangs)
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert [len(cluster.held(f"{name}-gang")) for name in "abc"] == [1, 1, 0]
    assert cluster.result.next_at == NOW + AFTER
    cluster.round(NOW + AFTER)
    assert [len(cluster.held(f"{name}-gang")) for name in "abc"] == [1, 1, 1]


def test_all_gangs_search_once_holds_have_ended(monkeypatch) -> None:
    monkeypatch.setattr(timing, "HOLD_SEARCHES", 1)
    gangs = [demand(name, 1, gpus, required=RACK, created=name) for gpus, name in enumerate("abcd", 1)]
    cluster = Cluster(full(racks(2, 1)), *gangs)
    cluster.round(NOW)
    end = NOW + AFTER + timing.HOLD_LIMIT
    for now in (*[NOW + AFTER] * 4, *[end - 1] * 4):
        cluster.round(now)
    assert [len(cluster.held(f"{name}-gang")) for name in "abcd"] == [1, 1, 0, 0]
    assert all(cluster.states[name].hold_from > end for name in ("c-gang", "d-gang"))
    cluster.round(end)
    cluster.round(end)
    assert [len(cluster.held(f"{name}-gang")) for name in "abcd"] == [0, 0, 1, 1]


def test_equal_gangs_are_refused_a_hold_by_one_search(monkeypatch) -> None:
    searched: list[str] = []
    find = hold.find_hold

    def find_hold(capacity: ClusterCapacity, wanted: Demand, *more: object) -> Hold | None:
        searched.append(wanted.gang.name)
        return find(capacity, wanted, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(hold, "find_hold", find_hold)
    gangs = [demand(name, 1, required=RACK, created=name) for name in "abcd"]
    cluster = Cluster(full(racks(1, 1)), *gangs)
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert searched == ["a-gang", "b-gang"], "b finds none, and c and d ask for the same"
    assert cluster.states["d-gang"].hold_from == NOW + 2 * AFTER


def test_bug_in_the_search_for_one_gang_stops_no_other(monkeypatch) -> None:
    bug, find = RecursionError("too deep"), hold.find_hold

    def fails_for_a(capacity: ClusterCapacity, wanted: Demand, *more: object) -> Hold | None:
        if wanted.gang.name == "a-gang":
            raise bug
        return find(capacity, wanted, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(hold, "find_hold", fails_for_a)
    gangs = [demand(name, 1, required=RACK, created=name) for name in "ab"]
    cluster = Cluster(full(racks(1, 1)), *gangs)
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert cluster.held("a-gang") == set()
    assert cluster.held("b-gang") == {"r0-h0"}
    assert cluster.result.unexpected == {cluster.states["a-gang"].demand.gang: bug}


def test_nodes_are_held_in_a_rack_that_was_renamed() -> None:
    runs = WantedPod(PodSlot("b", 1), "b-1", "r0-h1", gated=False)
    pins = {"b": {BLOCK: "b0", RACK: "former"}}
    wanted = gated_first(demand("b", 2, required=RACK, existing={1: runs}, pinned=pins))
    cluster = Cluster(full(racks(2, 2)), replace(wanted, was_scheduled=True))
    cluster.round(NOW)
    cluster.round(NOW + AFTER)
    assert cluster.held("b-gang") == {"r0-h0"}
