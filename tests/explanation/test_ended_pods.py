"""Which pods would have to end so that a gang of two nodes in one rack fits."""

from __future__ import annotations

import pytest

from grove import timing
from grove.explanation.remedies.ended_pods import UsedBy, fewest_ended
from tests.explanation.clusters import Cluster, a_gang, a_node, a_user

ANY = 2**31
RACKS = {"r1": ("a1", "a2"), "r2": ("b1", "b2")}


def cluster(pods: dict[str, list[UsedBy]]) -> Cluster:
    return Cluster([a_node(name, rack) for rack, names in RACKS.items() for name in names], pods)


def base(name: str, gang: str = "base", **more: bool) -> UsedBy:
    return a_user(name, 8, gang=gang, **more)


def scaled(name: str, gang: str = "scaled") -> UsedBy:
    return a_user(name, 8, gang=gang, scaled=True)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param({"a1": [base("x1")], "a2": [base("x2")], "b2": [base("y2")]}, ["y2"], id="fewest pods"),
        pytest.param(
            {
                "a1": [a_user("x1", 4), a_user("x2", 4)],
                "a2": [a_user("x3", 8)],
                "b1": [base("y1")],
                "b2": [base("y2")],
            },
            ["y1", "y2"],
            id="fewest pods of full racks",
        ),
        pytest.param(
            {"a1": [base("x1", "g1")], "a2": [base("x2", "g2")], "b1": [base("y1")], "b2": [base("y2")]},
            ["y1", "y2"],
            id="fewest gangs",
        ),
        pytest.param(
            {"a1": [base("x1")], "a2": [base("x2")], "b1": [scaled("y1")], "b2": [scaled("y2")]},
            ["y1", "y2"],
            id="scaled gangs before base gangs",
        ),
        pytest.param(
            {"a1": [a_user("x1", 8, 5)], "a2": [], "b1": [a_user("y1", 8, 1)], "b2": []},
            ["y1"],
            id="lower priority",
        ),
        pytest.param(
            {"a1": [base("x1", same_set=True)], "a2": [], "b1": [scaled("y1")], "b2": [scaled("y2")]},
            ["y1", "y2"],
            id="no pods of the own set",
        ),
    ],
)
def test_pods_end_where_that_costs_least(pods, expected):
    found = fewest_ended((known := cluster(pods)).index, a_gang(2), known.pods_on, ANY)
    assert found is not None
    assert sorted(each.pod.name for each in found.pods) == expected


def test_nodes_of_a_rack_with_the_fewest_pods_are_emptied():
    nodes = [a_node(name) for name in ("a1", "a2", "a3")]
    pods = {"a1": [a_user(f"x{n}", 2) for n in range(4)], "a2": [a_user("y", 8)], "a3": [a_user("z", 8)]}
    found = fewest_ended((known := Cluster(nodes, pods)).index, a_gang(2), known.pods_on, ANY)
    assert found is not None
    assert sorted(each.pod.name for each in found.pods) == ["y", "z"]


@pytest.mark.parametrize(("same_set", "expected"), [(False, None), (True, ["x1"])])
def test_pods_of_the_own_set_end_only_if_asked_for(same_set, expected):
    pods = {"a1": [base("x1", same_set=True)], "b1": [base("y1", same_set=True)], "b2": [base("y2")]}
    known = cluster(pods)
    found = fewest_ended(known.index, a_gang(2), known.pods_on, ANY, same_set=same_set)
    assert (sorted(each.pod.name for each in found.pods) if found else None) == expected


def test_nominated_pods_do_not_end():
    pods = {"a1": [base("x1")], "a2": [base("held", bound=False)], "b1": [base("y1")], "b2": [base("y2")]}
    known = cluster({node: [each for each in found if each.bound] for node, found in pods.items()})
    found = fewest_ended(known.index, a_gang(2), lambda node: pods[node], ANY)
    assert found is not None
    assert [each.pod.name for each in found.pods] == ["x1"]


def test_all_domains_are_tried_if_the_first_do_not_help(monkeypatch):
    monkeypatch.setattr(timing, "WHAT_IF_DOMAINS", 1)
    nodes = [a_node("a1", unschedulable=True), a_node("a2", unschedulable=True), a_node("b1", "r2")]
    known = Cluster([*nodes, a_node("b2", "r2")], {"b1": [base("y1")]})
    found = fewest_ended(known.index, a_gang(2), known.pods_on, ANY)
    assert found is not None
    assert [each.pod.name for each in found.pods] == ["y1"]
