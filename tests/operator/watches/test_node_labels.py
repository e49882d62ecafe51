"""Which replicas changed labels of nodes enqueue."""

from __future__ import annotations

from msgspec.structs import replace

from grove import timing
from grove.operator.caches.registry import Caches
from grove.operator.keys import ReplicaKey
from grove.operator.watches.node_labels import node_label_watches
from tests.operator.cluster_builders import listed_nodes, node
from tests.operator.observers.cluster.test_cluster_view import apply
from tests.operator.watches.enqueued_keys import EnqueuedKeys
from tests.operator.watches.test_placement import pod
from tests.plan.builders import a_set, read_set
from tests.topology.builders import packed

FIRST = {ReplicaKey("ns", "wl", 0): timing.BATCH_DELAY}


def watched(wishes: str) -> tuple[Caches, EnqueuedKeys]:
    """A set with a pod on a node."""
    caches = Caches(topology_aware=True)
    caches.nodes = listed_nodes(node("a"))
    caches.pods.replace([pod("p", "0", "a")], "1")
    found = read_set(packed(a_set("a"), wishes, "racks" if wishes else ""))
    caches.sets.replace([replace(found, metadata=replace(found.metadata, resource_version="1"))], "1")
    return caches, EnqueuedKeys(node_label_watches(caches))


async def test_relabelled_node_enqueues_constrained_replicas() -> None:
    caches, enqueued = watched("rack")
    assert enqueued.after(apply, caches.nodes, "MODIFIED", node("a", 2, zone="y")) == FIRST
    assert enqueued.after(apply, caches.nodes, "MODIFIED", node("a", 3, zone="y", cpu="9")) == {}
    caches, enqueued = watched("")
    assert enqueued.after(apply, caches.nodes, "MODIFIED", node("a", 2, zone="y")) == {}


async def test_listed_labels_enqueue_all_constrained_replicas() -> None:
    for wishes, expected in (("rack", FIRST), ("", {})):
        caches, enqueued = watched(wishes)
        caches.nodes.require({"rack"})
        assert enqueued.after(caches.nodes._use, caches.nodes._new_list()).keys() == expected.keys()
