"""What is seen around topologies, and how seldom they are woken for it."""

from __future__ import annotations

import asyncio

from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.operator.caches.nodes import Nodes, _NodeLabelCache
from grove.operator.caches.registry import Caches
from grove.operator.keys import TopologyKey
from grove.operator.observers.topology_usage import UPDATE_DELAY, TopologyUsageObserver
from tests.plan.builders import a_set, read_set
from tests.schedulers.builders import cluster_topology
from tests.topology.builders import packed

RACKS = cluster_topology("zone", "rack", name="racks")


def node(name: str, version: str, **labels: str) -> PartialObjectMetadata:
    return PartialObjectMetadata(
        ObjectMeta(name, uid=name, resource_version=version, labels=labels, annotations={"a": "b"})
    )


class TopologyUsageRun:
    """Topologies, nodes, and who is woken when."""

    def __init__(self) -> None:
        self.caches, self.nodes = Caches(), Nodes()
        self.enqueued: list[tuple[TopologyKey, float]] = []
        self.usage = TopologyUsageObserver(
            self.caches, self.nodes, lambda key, at: self.enqueued.append((key, at))
        )
        self.caches.topologies.apply_event("ADDED", RACKS)

    def look(self) -> _NodeLabelCache:
        """As if the server had told of all nodes."""
        seen = self.nodes._cache = _NodeLabelCache(self.nodes._keys)
        seen.subscribe(self.nodes._changed)
        return seen


async def test_of_nodes_only_the_labels_that_matter_are_kept_and_only_their_changes_are_news():
    run = TopologyUsageRun()
    assert run.usage.of(RACKS).nodes is None
    seen = run.look()
    seen.replace([node("a", "1", zone="z", rack="r", other="x")], "1")
    (kept,) = seen
    assert (kept.metadata.labels, kept.metadata.annotations) == ({"zone": "z", "rack": "r"}, {})
    assert run.usage.of(RACKS).nodes == ({"zone": "z", "rack": "r"},)
    run.enqueued.clear()
    seen.apply_event("MODIFIED", node("a", "2", zone="z", rack="r", other="y"))
    assert run.enqueued == []
    seen.apply_event("MODIFIED", node("a", "3", zone="z", rack="q"))
    ((key, at),) = run.enqueued
    assert key == TopologyKey("racks")
    assert at > asyncio.get_running_loop().time() + UPDATE_DELAY / 2
    other = cluster_topology("zone", "block", name="other")
    assert run.usage.of(other).nodes is None, "a label that was not kept is not known"


async def test_sets_that_name_a_topology_are_its_users():
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
