"""The cache of nodes: what is kept of a node, which changes notify, and when nodes are listed again."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import Node, NodeStatus
from grove.api.types.pod import PodCondition
from grove.operator.caches.nodes import Nodes, node_projection
from tests.fabrics.builders import BOTH

NVIDIA = BOTH.of("nvidia")
DOMAIN = "resource.nvidia.com/computeDomain"


def node(version: int = 1, gpus: str = "8", **labels: str) -> Node:
    """A node with more in it than is read."""
    body = {
        "metadata": {
            "name": "n",
            "uid": "u",
            "resourceVersion": str(version),
            "labels": {"zone": "z", "rack": "r", "other": "x", DOMAIN: "d1", **labels},
            "annotations": {"a": "b"},
        },
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"nvidia.com/gpu": gpus, "cpu": "64", "hugepages-1Gi": "0"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return msgspec.convert(body, Node)


def test_only_required_parts_of_node_are_kept():
    identity = ObjectMeta("n", uid="u", resource_version="1")
    labels_only = node_projection(frozenset({"zone", "rack"}), None)(node())
    assert labels_only.metadata == msgspec.structs.replace(identity, labels={"zone": "z", "rack": "r"})
    assert (labels_only.spec, labels_only.status) == (Node(identity).spec, NodeStatus())
    fabric_only = node_projection(frozenset(), NVIDIA)(node())
    assert fabric_only.metadata == msgspec.structs.replace(identity, labels={DOMAIN: "d1"})
    assert fabric_only.status == NodeStatus({"nvidia.com/gpu": "8"})


def test_placement_keeps_what_decides_where_pods_fit():
    found = node_projection(frozenset({"zone"}), None, placement=True)(node())
    assert found.metadata.labels == {"zone": "z"}
    assert found.spec == node().spec
    assert found.status == NodeStatus({"nvidia.com/gpu": "8", "cpu": "64"}, (PodCondition("Ready", "True"),))


@pytest.mark.parametrize("placement", [False, True])
def test_projection_of_projected_node_is_equal(placement):
    project = node_projection(frozenset({"zone"}), NVIDIA, placement=placement)
    assert project(project(node())) == project(node())


def test_listeners_get_the_names_of_changed_nodes():
    nodes, names = Nodes(placement=True), []
    nodes.subscribe_names(names.append)
    nodes.require({"zone"})
    listing = nodes._new_list()
    listing.cache.replace([node()], "1")
    assert (nodes.get("n"), nodes.keys, names) == (None, frozenset(), [])
    nodes._use(listing)
    assert nodes.get("n") is not None
    assert (nodes.get("other"), nodes.keys, names) == (None, {"zone"}, ["n"])
    for kind, changed, seen in [
        ("MODIFIED", node(2, rack="q"), []),
        ("MODIFIED", node(3, zone="y"), ["n"]),
        ("MODIFIED", node(4, zone="y", gpus="4"), ["n"]),
        ("DELETED", node(5, zone="y", gpus="4"), ["n"]),
    ]:
        names.clear()
        listing.cache.apply_event(kind, changed)
        assert names == seen


def test_new_list_names_nodes_of_both_lists():
    nodes, names = Nodes(), []
    nodes.require()
    first, second = nodes._new_list(), nodes._new_list()
    first.cache.replace([node()], "1")
    nodes._use(first)
    nodes.subscribe_names(names.append)
    second.cache.replace([msgspec.structs.replace(node(), metadata=ObjectMeta("m"))], "1")
    nodes._use(second)
    assert sorted(names) == ["m", "n"]


def test_listeners_are_called_for_the_part_that_they_read():
    nodes, calls = Nodes(NVIDIA), []
    nodes.subscribe(lambda: calls.append("labels"))
    nodes.subscribe(lambda: calls.append("accelerators"), lambda found: found.status.allocatable)
    nodes.require({"zone"})
    listing = nodes._new_list()
    listing.cache.replace([node()], "1")
    nodes._use(listing)
    assert calls == ["labels", "accelerators"]
    for changed, called in [
        (node(2, **{DOMAIN: "d2"}), []),
        (node(3, rack="q"), []),
        (node(4, zone="y"), ["labels"]),
        (node(5, zone="y", gpus="4"), ["accelerators"]),
    ]:
        calls.clear()
        listing.cache.apply_event("MODIFIED", changed)
        assert calls == called


def test_nodes_are_required_once_for_the_same_keys():
    nodes = Nodes()
    assert not nodes._more_required.is_set()
    nodes.require()
    assert nodes._more_required.is_set(), "nodes are watched without any label, too"
    nodes._new_list()
    nodes.require()
    assert not nodes._more_required.is_set()
    nodes.require({"zone"})
    assert nodes._more_required.is_set()


def test_former_nodes_are_read_until_more_keys_are_listed():
    nodes = Nodes()
    nodes.require({"zone"})
    first = nodes._new_list()
    assert (nodes.synced, list(nodes), nodes.labels({"zone"})) == (False, [], None)
    first.cache.replace([node()], "1")
    nodes._use(first)
    nodes.require({"rack"})
    second = nodes._new_list()
    assert nodes.labels({"zone"}) == ({"zone": "z"},)
    assert nodes.labels({"rack"}) is None
    second.cache.replace([node()], "1")
    nodes._use(second)
    assert nodes.labels({"zone", "rack"}) == ({"zone": "z", "rack": "r"},)


def test_labels_that_no_node_has():
    nodes = Nodes()
    nodes.require({"zone"})
    assert nodes.unused(["zone"]) == frozenset(), "not listed yet"
    assert nodes.labels_of(["n"], ["zone"]) is None
    listing = nodes._new_list()
    listing.cache.replace([node()], "1")
    nodes._use(listing)
    assert nodes.labels_of(["n", "gone"], ["zone"]) == {"n": {"zone": "z"}}
    assert nodes.labels_of(["n"], ["rack"]) is None, "its label is not listed yet"
    other = msgspec.structs.replace(node(3), metadata=ObjectMeta("m", resource_version="3"))
    for kind, changed, unused in [
        ("ADDED", other, frozenset()),
        ("DELETED", node(4), {"zone"}),
        ("ADDED", node(5), frozenset()),
        ("MODIFIED", node(6, zone="y"), frozenset()),
        ("DELETED", node(7, zone="y"), {"zone"}),
        ("DELETED", other, frozenset()),  # without nodes nothing is wrong
    ]:
        listing.cache.apply_event(kind, changed)
        assert nodes.unused(["zone", "rack"]) == unused
