"""Which nodes belong to a topology."""

from __future__ import annotations

from timeit import repeat

import pytest

from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.membership import depth, domain_path
from tests.topology.placement.builders import a_node

LEVELS = ("zone", "rack", "name")


@pytest.mark.parametrize(
    ("labels", "path"),
    [
        ({"zone": "a", "rack": "1", "name": "n"}, ("a", "1", "n")),
        ({"zone": "a", "name": "n"}, ("a", "", "")),
        ({"rack": "1", "name": "n"}, ("", "", "")),
        ({"zone": "a", "rack": "", "name": "n"}, ("a", "", "")),
        ({}, ("", "", "")),
    ],
)
def test_path_ends_at_the_first_missing_label(labels: dict[str, str], path: tuple[str, ...]) -> None:
    assert domain_path(labels, LEVELS) == path


def test_depth_is_that_of_the_deepest_node() -> None:
    assert depth([("a", "", ""), ("a", "1", ""), ("", "", "")]) == 2
    assert depth([("", "", "")]) == depth([]) == 0


@pytest.mark.parametrize(
    ("places", "level", "labels"),
    [
        (["a/1/n1", "a/2/n2"], 0, ()),
        (["a/1/n1", "a//n2"], 0, ("rack", "name")),
        (["a/1/n1", "a//n2"], 1, ()),
        (["a/1/n1", "//n2"], 0, ()),
        (["a//n1", "b//n2"], 0, ()),
        ([], 0, ()),
    ],
    ids=["all belong", "another pool", "not in a rack", "no zone either", "label of no node", "no nodes"],
)
def test_labels_that_nodes_of_another_pool_lack(
    places: list[str], level: int, labels: tuple[str, ...]
) -> None:
    assert ClusterIndex(LEVELS, map(a_node, places)).narrower_labels(level) == labels


def test_labels_follow_the_nodes() -> None:
    index = ClusterIndex(LEVELS, [a_node("a/1/n1")])
    index.set_node(a_node("a//n2"))
    assert index.narrower_labels(0) == ("rack", "name")
    index.set_node(a_node("a/2/n2"))
    assert index.narrower_labels(0) == ()
    index.set_node(a_node("a//n3"))
    assert index.narrower_labels(0) == ("rack", "name")
    index.remove_node("n3")
    assert index.narrower_labels(0) == ()


def test_labels_take_as_long_with_many_hosts_as_with_few() -> None:
    few, many = (ClusterIndex(LEVELS, (a_node(f"a/1/n{i}") for i in range(size))) for size in (10, 10_000))
    times = [min(repeat(lambda each=each: each.narrower_labels(0), number=100)) for each in (few, many)]
    assert times[1] < 10 * times[0]
