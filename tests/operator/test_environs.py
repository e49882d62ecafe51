"""What is seen around topologies, and how seldom they are woken for it."""

from __future__ import annotations

import asyncio

from grove.api.cluster import Bare
from grove.api.meta import ObjectMeta
from grove.operator.caches import Caches
from grove.operator.environs import LEISURE, Environs
from grove.operator.keys import TopologyKey
from grove.operator.nodes import Nodes, _Slim
from tests.plan.builders import a_set, read_set
from tests.schedulers.builders import cluster_topology
from tests.topology.builders import packed

RACKS = cluster_topology("zone", "rack", name="racks")


def node(name: str, version: str, **labels: str) -> Bare:
    return Bare(ObjectMeta(name, uid=name, resource_version=version, labels=labels, annotations={"a": "b"}))


class Scene:
    """Topologies, nodes, and who is woken when."""

    def __init__(self) -> None:
        self.caches, self.nodes = Caches(), Nodes()
        self.woken: list[tuple[TopologyKey, float]] = []
        self.environs = Environs(self.caches, self.nodes, lambda key, at: self.woken.append((key, at)))
        self.caches.topologies.apply_event("ADDED", RACKS)

    def look(self) -> _Slim:
        """As if the server had told of all nodes."""
        seen = self.nodes._seen = _Slim(self.nodes._keys)
        seen.subscribe(self.nodes._changed)
        return seen


async def test_of_nodes_only_the_labels_that_matter_are_kept_and_only_their_changes_are_news():
    scene = Scene()
    assert scene.environs.of(RACKS).nodes is None
    seen = scene.look()
    seen.replace([node("a", "1", zone="z", rack="r", other="x")], "1")
    (kept,) = seen
    assert (kept.metadata.labels, kept.metadata.annotations) == ({"zone": "z", "rack": "r"}, {})
    assert scene.environs.of(RACKS).nodes == ({"zone": "z", "rack": "r"},)
    scene.woken.clear()
    seen.apply_event("MODIFIED", node("a", "2", zone="z", rack="r", other="y"))
    assert scene.woken == []
    seen.apply_event("MODIFIED", node("a", "3", zone="z", rack="q"))
    ((key, at),) = scene.woken
    assert key == TopologyKey("racks")
    assert at > asyncio.get_running_loop().time() + LEISURE / 2
    other = cluster_topology("zone", "block", name="other")
    assert scene.environs.of(other).nodes is None, "a label that was not kept is not known"


async def test_sets_that_name_a_topology_are_its_users():
    scene = Scene()
    body = packed(a_set("a"), "rack")
    scene.caches.sets.apply_event("ADDED", read_set(body))
    assert scene.environs.of(RACKS).users == ("ns/wl",)
    assert [key for key, _ in scene.woken] == [TopologyKey("racks")]
    scene.woken.clear()
    changed = read_set({**body, "metadata": {**body["metadata"], "resourceVersion": "99"}})
    scene.caches.sets.apply_event("MODIFIED", changed)
    assert scene.woken == []
    scene.caches.sets.apply_event("DELETED", changed)
    assert [key for key, _ in scene.woken] == [TopologyKey("racks")]
    assert scene.environs.of(RACKS).users == ()
