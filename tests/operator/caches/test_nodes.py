"""The cache of nodes: what is kept of a node, which changes notify, and when nodes are listed again."""

from __future__ import annotations

import msgspec

from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import Node, NodeStatus
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
            "allocatable": {"nvidia.com/gpu": gpus, "cpu": "64"},
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


def test_projection_of_projected_node_is_equal():
    project = node_projection(frozenset({"zone"}), NVIDIA)
    assert project(project(node())) == project(node())


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
