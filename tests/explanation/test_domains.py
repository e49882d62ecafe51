"""Rows of domains: what each has and lacks."""

from __future__ import annotations

import pytest

from grove.explanation.domains import domain_rows, short_resource
from grove.explanation.model import DomainRow
from grove.topology.placement.model import Partition
from tests.explanation.clusters import GPU, Cluster, a_gang, a_node, a_user


def rows(
    cluster: Cluster,
    pods: int,
    gpus: int = 8,
    required: str = "topology/rack",
    partitions: tuple[Partition, ...] = (),
) -> list[DomainRow]:
    problem = a_gang(pods, gpus, required, partitions)
    resource = short_resource(cluster.index, problem.gang, cluster.refused(problem))
    return domain_rows(cluster.index, problem.gang, resource)


def test_row_counts_unusable_nodes_and_what_is_free():
    nodes = [a_node("a"), a_node("b"), a_node("c", taint="maintenance"), a_node("d", unschedulable=True)]
    (row,) = rows(Cluster(nodes, {"a": [a_user("x", 5)]}), 4)
    assert row == DomainRow(
        "rack z/r1", 4, 2, {"cordoned": 1, "tainted maintenance": 1}, GPU, 11, 16, 32, 1, 4
    )
    assert row.short == 21


def test_closest_domain_is_first():
    nodes = [a_node("a", "far"), a_node("b", "near"), a_node("c", "near"), a_node("d", "full")]
    found = rows(Cluster(nodes, {"d": [a_user("x", 8)]}), 3)
    assert [row.domain for row in found] == ["rack z/near", "rack z/far", "rack z/full"]
    assert [row.room for row in found] == [2, 1, 0]


def test_fragments_are_not_short_and_have_no_room():
    pods = {name: [a_user("x", 4)] for name in ("a", "b")}
    (row,) = rows(Cluster([a_node("a"), a_node("b")], pods), 1)
    assert (row.free, row.need, row.short, row.room, row.pods) == (8, 8, 0, 0, 1)


def test_gang_without_level_has_the_cluster_as_domain():
    (row,) = rows(Cluster([a_node("a"), a_node("b", "r2")]), 3, required="")
    assert (row.domain, row.nodes, row.short) == ("the cluster", 2, 8)


@pytest.mark.parametrize("required", [True, False])
def test_gang_with_packed_domains_has_the_rows_of_its_level(required: bool):
    nodes = [a_node("a"), a_node("b", "r2")]
    found = rows(Cluster(nodes), 3, partitions=(Partition("clique", required), Partition("clique")))
    assert [(row.domain, row.room) for row in found] == [("rack z/r1", 1), ("rack z/r2", 1)]


def test_row_names_the_gangs_that_nodes_are_held_for():
    cluster = Cluster([a_node("a"), a_node("b"), a_node("c", "r2")])
    held = {"a": [("ml", "train-0")], "b": [("ml", "train-0"), ("ns", "x-0")]}
    rows = domain_rows(cluster.index, a_gang(3).gang, GPU, lambda node: held.get(node, ()))
    assert {row.domain: row.reserved for row in rows} == {
        "rack z/r1": {"ml/train-0": 2, "ns/x-0": 1},
        "rack z/r2": {},
    }
