"""Nodes and sets of topologies, and when a change enqueues them."""

from __future__ import annotations

import asyncio

from grove import timing
from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import Node
from grove.kube.cache.cache import Cache
from grove.operator.caches.registry import Caches
from grove.operator.keys import TopologyKey
from grove.operator.observers.topology_usage import TopologyUsageObserver
from grove.operator.watches.table import register
from grove.operator.watches.topologies import topology_watches
from tests.plan.builders import a_set, read_set
from tests.schedulers.builders import cluster_topology
from tests.topology.builders import packed

RACKS = cluster_topology("zone", "rack", name="racks")


def node(name: str, version: str, **labels: str) -> Node:
    return Node(ObjectMeta(name, uid=name, resource_version=version, labels=labels))


class TopologyUsageRun:
    """A topology, nodes, and the keys that are enqueued."""

    def __init__(self) -> None:
        self.caches = Caches()
        self.nodes = self.caches.nodes
        self.enqueued: list[tuple[TopologyKey, float]] = []
        self.usage = TopologyUsageObserver(self.caches)
        self.caches.topologies.apply_event("ADDED", RACKS)
        watches = topology_watches(self.caches)
        register(watches, lambda key, at=0.0: self.enqueued.append((key, at)))
        self.enqueued.clear()

    def list_nodes(self) -> Cache[Node]:
        """A cache of nodes with the required labels."""
        listing = self.nodes._new_list()
        self.nodes._use(listing)
        return listing.cache


async def test_change_of_level_label_enqueues_topology():
    run = TopologyUsageRun()
    assert run.usage.of(RACKS).nodes is None
    cache = run.list_nodes()
    cache.replace([node("a", "1", zone="z", rack="r", other="x")], "1")
    assert run.usage.of(RACKS).nodes == ({"zone": "z", "rack": "r"},)
    run.enqueued.clear()
    cache.apply_event("MODIFIED", node("a", "2", zone="z", rack="r", other="y"))
    assert run.enqueued == []
    cache.apply_event("MODIFIED", node("a", "3", zone="z", rack="q"))
    ((key, at),) = run.enqueued
    assert key == TopologyKey("racks")
    assert at > asyncio.get_running_loop().time() + timing.TOPOLOGY_USAGE_DELAY / 2
    other = cluster_topology("zone", "block", name="other")
    assert run.usage.of(other).nodes is None, "a label that was not kept is not known"


async def test_set_naming_topology_is_its_user():
    run = TopologyUsageRun()
    body = packed(a_set("a"), "rack")
    run.caches.sets.apply_event("ADDED", read_set(body))
    assert run.usage.of(RACKS).users == ("ns/wl",)
    assert [key for key, _ in run.enqueued] == [TopologyKey("racks")]
    run.enqueued.clear()
    changed = read_set({**body, "metadata": {**body["metadata"], "resourceVersion": "99"}})
    run.caches.sets.apply_event("MODIFIED", changed)
    assert run.enqueued == []
    run.caches.sets.apply_event("DELETED", changed)
    assert [key for key, _ in run.enqueued] == [TopologyKey("racks")]
    assert run.usage.of(RACKS).users == ()


async def test_set_with_fallback_is_user_of_its_topology():
    run = TopologyUsageRun()
    body = packed(a_set("a"), "zone", name="other")
    fallback = {"topologyName": "racks", "packDomain": "rack"}
    body["spec"]["template"]["topologyConstraint"]["fallbacks"] = [fallback]
    run.caches.sets.apply_event("ADDED", read_set(body))
    assert run.usage.of(RACKS).users == ("ns/wl",)
    assert {key for key, _ in run.enqueued} == {TopologyKey("other"), TopologyKey("racks")}
