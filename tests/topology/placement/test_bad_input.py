"""Input that no cluster should have, and gangs that no cluster holds: an answer in bounded time."""

from __future__ import annotations

from time import process_time

from grove.topology.placement.answers import GaveUp, NoFit, Placed, Reason
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Node, NodeUse, Pod, PodShape, Problem, Requirement, Term, Unit
from grove.topology.placement.solve import solve
from tests.topology.placement.builders import (
    GPU,
    LEVELS,
    a_gang,
    a_node,
    a_shape,
    place,
    pods,
    racks,
    reasons,
    refuse,
    used,
)

LONGEST = 20.0
"""Seconds of one core, on a slow machine; all of these take less than two."""


def test_empty_cluster_has_no_domain() -> None:
    assert reasons(refuse([], a_gang(2, "rack"))) == {Reason.NO_DOMAIN}
    assert reasons(refuse([], a_gang(2))) == {Reason.INSUFFICIENT}


def test_nodes_without_labels_satisfy_no_level() -> None:
    nodes = [a_node(f"//n{i}") for i in range(3)]
    assert reasons(refuse(nodes, a_gang(1, "rack"))) == {Reason.NO_DOMAIN}
    assert len(place(nodes, a_gang(3))) == 3


def test_unknown_level_has_no_domain() -> None:
    assert reasons(refuse(racks(), a_gang(1, "row"))) == {Reason.NO_DOMAIN}
    part = Unit("part", "row", "", (), pods("p", 1))
    answer = refuse(racks(), Unit("gang", "zone", "", (part,)))
    assert answer.reports[0].unit == "part"
    assert reasons(answer) == {Reason.NO_DOMAIN}


def test_unknown_preferred_level_is_no_preference() -> None:
    assert place(racks(), a_gang(1, "", "row"))


def test_gang_larger_than_the_cluster_does_not_fit() -> None:
    answer = refuse(racks(), a_gang(5))
    assert Reason.TOO_LARGE in reasons(answer)
    assert answer.fits_if_empty is False


def test_contradictory_selectors_are_named() -> None:
    term = Term((Requirement("zone", "In", ("b",)),))
    shape = a_shape(1, node_selector={"zone": "a"}, affinity=(term,))
    answer = refuse(racks("ab"), a_gang(1, "zone", shape=shape))
    assert reasons(answer) == {Reason.CONTRADICTION}
    assert answer.reports[0].shortages[0].resource == "zone"


def test_selectors_of_two_racks_in_a_rack_do_not_fit() -> None:
    both = tuple(Pod(f"p{rack}", a_shape(1, node_selector={"rack": rack})) for rack in "12")
    assert Reason.SELECTOR in reasons(refuse(racks(), Unit("gang", "rack", "", (), both)))
    assert len(place(racks(), Unit("gang", "zone", "", (), both))) == 2


def test_node_without_allocatable_holds_nothing() -> None:
    nodes = [Node("n", {"zone": "a", "rack": "1"}, {"cpu": 0, GPU: 0, "pods": 0}), Node("m", {"zone": "a"})]
    assert isinstance(refuse(nodes, a_gang(1, "zone")), NoFit)


def test_resource_that_no_node_has_is_named() -> None:
    answer = refuse(racks(), a_gang(1, shape=PodShape({"example.com/fpga": 1, "pods": 1})))
    assert any(each.resource == "example.com/fpga" for each in answer.reports[0].shortages)


def test_over_committed_node_takes_only_other_resources() -> None:
    nodes = racks("a", 1, 1)
    assert refuse(nodes, a_gang(1, shape=a_shape(1)), {"a-1-1": used(20)})
    assert place(nodes, a_gang(1, shape=PodShape({"cpu": 1, "pods": 1})), {"a-1-1": used(20)})


def test_over_committed_node_does_not_hide_room_of_others() -> None:
    assert place(racks("a", 1, 2), a_gang(1), {"a-1-1": NodeUse({0: {GPU: 10**6}})})


def test_a_million_gpus_on_a_node() -> None:
    start = process_time()
    nodes = [a_node("a/1/n1", 10**6)]
    shape = PodShape({GPU: 1})
    assert len(place(nodes, a_gang(1000, "rack", shape=shape))) == 1000
    assert process_time() - start < LONGEST


def test_pods_that_request_nothing_fit_anywhere() -> None:
    assert len(place(racks("a", 1, 1), a_gang(500, "rack", shape=PodShape({})))) == 500


def test_a_hundred_thousand_pods_that_fit() -> None:
    nodes = [a_node(f"a/{i // 16}/n{i}", 64) for i in range(2000)]
    start = process_time()
    index = ClusterIndex(LEVELS, nodes)
    gang = a_gang(100_000, "zone", "rack", PodShape({GPU: 1, "pods": 1}))
    assert isinstance(solve(index, Problem(gang)), Placed)
    assert process_time() - start < LONGEST


def test_a_hundred_thousand_pods_that_do_not_fit() -> None:
    start = process_time()
    shapes = [PodShape({"cpu": 100 + i, GPU: i % 3, "pods": 1}) for i in range(7)]
    parts = tuple(Unit(f"u{i}", "rack", "", (), pods(f"u{i}-", 20_000, shapes[i])) for i in range(5))
    answer = solve(ClusterIndex(LEVELS, racks("abc", 20, 8)), Problem(Unit("gang", "zone", "", parts)))
    assert isinstance(answer, NoFit)
    assert process_time() - start < LONGEST


def test_packing_that_is_too_hard_gives_up_in_time() -> None:
    sizes = [17, 19, 23, 29, 31, 37, 41, 43] * 4
    many = tuple(Pod(f"p{i}", a_shape(size)) for i, size in enumerate(sizes))
    capacity = sum(sizes) // 12
    nodes = [a_node(f"a/1/n{i:02}", capacity + 1) for i in range(12)]
    start = process_time()
    answer = solve(ClusterIndex(LEVELS, nodes), Problem(Unit("gang", "rack", "", (), many)))
    assert isinstance(answer, GaveUp | Placed)
    assert process_time() - start < LONGEST
