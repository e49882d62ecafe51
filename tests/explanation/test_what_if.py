"""Changes of the cluster after which a gang fits."""

from __future__ import annotations

import pytest

from grove.explanation.remedies.what_if import holders, remedies
from tests.explanation.clusters import GPU, Cluster, a_gang, a_node, a_user


def found(cluster: Cluster, pods: int, *, gpus: int = 8, priority: int = 0) -> list[str]:
    problem = a_gang(pods, gpus)
    answer = cluster.refused(problem)
    return [each.text for each in remedies(cluster.index, problem, answer, priority, cluster.pods_on)]


def test_cordoned_node_is_uncordoned():
    cluster = Cluster([a_node("a"), a_node("b", unschedulable=True), a_node("c", "r2")])
    assert found(cluster, 2) == [
        "uncordon b",
        "require one zone instead of one rack",
        "add 1 more node like a",
    ]


def test_node_that_is_not_ready_is_repaired():
    assert found(Cluster([a_node("a"), a_node("b", ready=False)]), 2) == [
        "make ready b",
        "add 1 more node like a",
    ]


def test_taint_is_tolerated_or_removed():
    cluster = Cluster([a_node("a"), a_node("b", taint="maintenance"), a_node("c", taint="other")])
    assert found(cluster, 2) == [
        "tolerate taint maintenance, or remove it from b",
        "tolerate taint other, or remove it from c",
        "add 1 more node like a",
    ]


def test_pods_of_a_lower_priority_make_room():
    pods = {"a": [a_user("low", 4), a_user("high", 4, priority=10)], "b": [a_user("small", 2)]}
    cluster = Cluster([a_node("a"), a_node("b")], pods)
    assert found(cluster, 2, gpus=4, priority=5)[0] == "end 1 pod of a lower priority: ml/low"


def test_only_as_many_pods_end_as_needed():
    pods = {"a": [a_user("one", 2), a_user("two", 2), a_user("three", 4)], "b": []}
    cluster = Cluster([a_node("a"), a_node("b")], pods)
    assert found(cluster, 2, gpus=6, priority=5)[0] == "end 2 pods of a lower priority: ml/three, ml/one"


def test_pods_of_equal_priority_are_named_as_such():
    cluster = Cluster([a_node("a"), a_node("b")], {"b": [a_user("other", 8)]})
    assert found(cluster, 2) == ["end 1 pod: ml/other", "add 1 more node like a"]


@pytest.mark.parametrize(("pods", "more"), [(3, 1), (4, 2), (10, 8)])
def test_number_of_nodes_to_add_is_the_smallest(pods, more):
    texts = found(Cluster([a_node("a"), a_node("b")]), pods)
    assert texts == [f"add {more} more node{'s' * (more > 1)} like a"]


def test_nothing_helps_against_a_resource_that_no_node_has():
    cluster = Cluster([a_node("a")])
    problem = a_gang(1, gpus=9)
    answer = cluster.refused(problem)
    assert list(remedies(cluster.index, problem, answer, 0, cluster.pods_on)) == []


def test_holders_are_those_that_use_most_first():
    pods = {"a": [a_user("small", 2), a_user("large", 6, gang="g")], "c": [a_user("elsewhere", 8)]}
    cluster = Cluster([a_node("a"), a_node("c", "r2")], pods)
    held = holders(cluster.index, ("z", "r1"), GPU, cluster.pods_on)
    assert [(each.pod.name, each.amount, each.gang) for each in held] == [("large", 6, "g"), ("small", 2, "")]
