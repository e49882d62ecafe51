"""Channels and accelerators of nodes, counted from watch events."""

from __future__ import annotations

import asyncio

import msgspec

from grove.api.types.kubernetes_objects import Node, ResourceSlice
from grove.fabrics.channel_coverage import ChannelCoverage
from grove.local.standins.dra.objects import resource_slice
from grove.operator.caches.fabric_nodes import FabricNodes
from grove.operator.caches.nodes import Nodes
from tests.fabrics.builders import BOTH


def slice_(node, version="1"):
    body = resource_slice(node, "uid")
    body["metadata"] |= {"uid": node, "resourceVersion": version}
    return msgspec.convert(body, ResourceSlice)


def node(name, gpus, version="1", holder=""):
    labels = {"resource.nvidia.com/computeDomain": holder} if holder else {}
    meta = {"name": name, "uid": name, "resourceVersion": version, "labels": {**labels, "zone": "z"}}
    status = {"allocatable": {"nvidia.com/gpu": gpus, "cpu": "64"}}
    return msgspec.convert({"metadata": meta, "status": status}, Node)


async def test_channel_count_change_notifies_once(monkeypatch):
    monkeypatch.setattr("grove.timing.FABRIC_NODES_DELAY", 0.0)
    fabric_nodes, changes = FabricNodes(BOTH, Nodes()), asyncio.Queue()
    fabric_nodes.subscribe(changes.put_nowait)
    channel_cache = fabric_nodes._channel_caches["nvidia"]
    assert not channel_cache.required.is_set()
    fabric_nodes.require("nvidia")
    fabric_nodes.require("example")  # has no driver, and nothing to watch
    assert channel_cache.required.is_set()
    assert fabric_nodes.count("nvidia") is None
    channel_cache.replace([slice_("a"), slice_("b")], "5")
    assert (fabric_nodes.count("nvidia"), fabric_nodes.count("example")) == (2, None)
    assert await asyncio.wait_for(changes.get(), 120) == "nvidia"
    channel_cache.apply_event("MODIFIED", slice_("a", "6"))
    assert fabric_nodes._timer is None
    channel_cache.apply_event("DELETED", slice_("b", "7"))
    channel_cache.apply_event("DELETED", slice_("a", "8"))
    assert fabric_nodes.count("nvidia") == 0
    assert await asyncio.wait_for(changes.get(), 120) == "nvidia"
    assert changes.empty()  # once for both
    assert fabric_nodes.channel_coverage("nvidia") is None  # nodes are not watched
    assert fabric_nodes.nodes_by_domain("nvidia") == {}


async def test_b7_automatic_mode_compares_nodes_with_channels():
    nodes = Nodes(BOTH.auto)
    fabric_nodes = FabricNodes(BOTH, nodes, BOTH.auto)
    assert fabric_nodes._channel_caches["nvidia"].required.is_set()
    fabric_nodes._channel_caches["nvidia"].replace([slice_("a"), slice_("b")], "5")
    assert fabric_nodes.channel_coverage("nvidia") is None
    listing = nodes._new_list()
    node_cache = listing.cache
    node_cache.replace([node("a", "8", holder="d1"), node("b", "4"), node("c", 8), node("cpu", "0")], "5")
    nodes._use(listing)
    assert fabric_nodes.channel_coverage("nvidia") == ChannelCoverage(3, ("c",), 4)
    assert fabric_nodes.nodes_by_domain("nvidia") == {"d1": ["a"]}
    before = fabric_nodes.channel_coverage("nvidia")
    node_cache.apply_event("MODIFIED", node("a", "8", "8", holder="d2"))
    assert fabric_nodes.nodes_by_domain("nvidia") == {"d2": ["a"]}
    unchanged = fabric_nodes.channel_coverage("nvidia") is before
    assert unchanged, "a node that joins a domain does not change the coverage"
    fabric_nodes._channel_caches["nvidia"].apply_event("ADDED", slice_("c", "9"))
    assert fabric_nodes.channel_coverage("nvidia") == ChannelCoverage(3, (), 4)
    node_cache.apply_event("MODIFIED", node("b", "8", "9"))
    assert fabric_nodes.channel_coverage("nvidia") == ChannelCoverage(3, (), 8)


async def test_node_labels_are_required_only_where_nodes_are_read(monkeypatch):
    monkeypatch.setattr("grove.timing.FABRIC_NODES_DELAY", 0.0)
    unread, read, automatic = Nodes(), Nodes(), Nodes(BOTH.auto)
    for nodes, options in (
        (unread, {}),
        (read, {"reads_nodes": True}),
        (automatic, {"automatic": BOTH.auto, "reads_nodes": True}),
    ):
        fabric_nodes = FabricNodes(BOTH, nodes, **options)
        fabric_nodes.require("nvidia")
        fabric_nodes.require("example")
    keys = {"resource.nvidia.com/computeDomain", "nvidia.com/gpu.clique"}
    assert (unread._required_keys, read._required_keys) == (None, keys)
    assert automatic._required_keys == frozenset(), "they are kept there without being listed again"


async def test_labels_of_listed_nodes_are_known_and_reported(monkeypatch):
    monkeypatch.setattr("grove.timing.FABRIC_NODES_DELAY", 0.0)
    nodes, changes = Nodes(), asyncio.Queue()
    fabric_nodes = FabricNodes(BOTH, nodes, reads_nodes=True)
    fabric_nodes.subscribe(changes.put_nowait)
    fabric_nodes.require("nvidia")
    assert fabric_nodes.domain_of_node("nvidia", "a") == ""
    found = node("a", "8", holder="d1")
    found.metadata.labels["nvidia.com/gpu.clique"] = "x.0"
    nodes.use_list([found])
    assert await asyncio.wait_for(changes.get(), 120) == "nvidia"
    assert (fabric_nodes.domain_of_node("nvidia", "a"), fabric_nodes.partition_of_node("nvidia", "a")) == (
        "d1",
        "x.0",
    )
    assert fabric_nodes.domain_of_node("nvidia", "b") == fabric_nodes.domain_of_node("example", "a") == ""
