"""The domains of a topology, their GPUs, unusable nodes and slots."""

from __future__ import annotations

from grove.views.topology.domain_view import DomainView, Gpus, TopologyTree, topology_tree
from tests.views.topology.builders import CLUSTER, LEVELS, a_node


def domain(tree: TopologyTree, *path: str) -> DomainView:
    found = tree.cluster
    for name in path:
        (found,) = (each for each in found.domains if each.name == name)
    return found


def test_gpus_are_counted_by_use():
    tree = topology_tree("default", LEVELS, CLUSTER)
    assert domain(tree, "z1", "r1").gpus == Gpus(total=24, ours=12, others=2, free=2, blocked=8)
    assert domain(tree, "z2").gpus == Gpus(total=16, others=1, free=8, blocked=7)
    assert tree.cluster.gpus == Gpus(total=56, ours=12, others=11, free=18, blocked=15)


def test_unusable_nodes_are_named():
    tree = topology_tree("default", LEVELS, CLUSTER)
    assert tree.cluster.not_ready == ("c1",)
    assert domain(tree, "z1").cordoned == ("a10",)
    assert domain(tree, "z1", "r2").tainted == {"maintenance": ("b2",)}


def test_taint_of_a_cordon_is_not_listed_twice():
    node = a_node("n", "z/r", cordoned=True, taints=("node.kubernetes.io/unschedulable",))
    found = topology_tree("t", LEVELS, [node]).cluster
    assert (found.cordoned, found.tainted) == (("n",), {})


def test_partitions_are_grouped_by_label():
    (first, second) = domain(topology_tree("t", LEVELS, CLUSTER), "z1", "r1").partitions
    assert (first.name, first.nodes, first.gpus.free) == ("c1", 2, 2)
    assert (second.name, second.nodes, second.gpus.blocked) == ("c2", 1, 8)


def test_racks_of_equal_names_in_two_zones_are_two():
    tree = topology_tree("t", LEVELS, CLUSTER)
    assert [level.domains for level in tree.levels] == [2, 3, 7]
    assert domain(tree, "z1", "r1").nodes == 3
    assert domain(tree, "z2", "r1").nodes == 2


def test_nodes_without_label_are_last():
    last = topology_tree("t", LEVELS, CLUSTER).cluster.domains[-1]
    assert (last.level, last.name, [node.name for node in last.members]) == ("zone", "", ["login"])


def test_nodes_are_sorted_by_number():
    rack = domain(topology_tree("t", LEVELS, CLUSTER), "z1", "r1")
    assert [each.name for each in rack.domains] == ["a1", "a2", "a10"]


def test_slots_leave_out_unusable_nodes():
    nodes = [a_node("a", "z/r"), a_node("b", "z/r"), a_node("c", "z/r", cordoned=True)]
    tree = topology_tree("t", LEVELS, nodes)
    assert tree.levels[1].slots == {1: 16, 8: 2, 16: 1, 32: 0, 64: 0}
    assert domain(tree, "z", "r").slots == tree.levels[1].slots
    assert tree.levels[2].slots[16] == 0


def test_cluster_without_topology_is_one_domain():
    tree = topology_tree("", (), CLUSTER)
    assert tree.levels == ()
    assert (tree.cluster.nodes, tree.cluster.domains, len(tree.cluster.members)) == (8, (), 8)
