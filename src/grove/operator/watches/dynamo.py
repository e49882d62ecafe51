"""Event mapping for DynamoGraphDeployments: which watch event enqueues which deployment.

A change of the deployment's own status enqueues nothing, unless another writer made it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grove.api.naming import labels
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo import keys
from grove.dynamo.api.kueue_topology import KueueTopology
from grove.dynamo.api.pull_secret import PullSecret
from grove.dynamo.context import provider
from grove.dynamo.snapshot import StoredGraph
from grove.kube.cache.cache import Cache, HasMetadata
from grove.operator.caches.dynamo import GraphCaches, GraphKey, owning_graph
from grove.operator.caches.nodes import Nodes
from grove.operator.caches.registry import Caches

EnqueueGraph = Callable[[GraphKey], None]


def register_handlers(
    caches: Caches, graph_caches: GraphCaches, nodes: Nodes, enqueue: EnqueueGraph
) -> dict[GraphKey, str]:
    """Subscribe to the caches; existing deployments and sets are enqueued at once. Returns the names of the
    deployments' sets, which the handlers keep up to date."""
    handlers = _GraphEventHandlers(caches, graph_caches, enqueue)
    _replay_and_subscribe(graph_caches.graphs, handlers.on_graph)
    _replay_and_subscribe(caches.sets, handlers.on_set)
    for replica_object in (caches.cliques, caches.groups):
        replica_object.subscribe(handlers.on_replica_object)
    for cache in graph_caches.children.values():
        cache.subscribe(handlers.on_child)
        cache.on_synced_or_absent(handlers.on_kind_available)
    nodes.subscribe(handlers.on_domains)
    if graph_caches.kueue is not None:
        graph_caches.kueue.subscribe(handlers.on_kueue)
        graph_caches.kueue.on_synced_or_absent(handlers.on_domains)
    if graph_caches.secrets is not None:
        graph_caches.secrets.subscribe(handlers.on_secret)
    caches.claim_templates.subscribe(handlers.on_template)
    for topologies in (caches.topologies, caches.topology_bindings):
        topologies.subscribe(handlers.on_topology)
    return handlers.sets


def _replay_and_subscribe(cache: Cache[Any], handler: Callable[[Any, Any], None]) -> None:
    for found in cache:
        handler(None, found)
    cache.subscribe(handler)


class _GraphEventHandlers:
    def __init__(self, caches: Caches, graph_caches: GraphCaches, enqueue: EnqueueGraph) -> None:
        self._caches, self._graph_caches, self._enqueue = caches, graph_caches, enqueue
        self.sets: dict[GraphKey, str] = {}

    def on_graph(self, old: StoredGraph | None, new: StoredGraph | None) -> None:
        found = new or old
        assert found is not None
        key = GraphKey(found.metadata.namespace, found.metadata.name)
        if old is None or new is None or _changed(old, new) or self._written_by_others(old, new):
            self._enqueue(key)

    def _written_by_others(self, old: StoredGraph, new: StoredGraph) -> bool:
        """Whether another writer changed the status: our own changes come with the reply of the write."""
        return old.status != new.status and not self._graph_caches.graphs.applying_reply

    def on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        for found in (old, new):
            if found is not None and (key := owning_graph(found.metadata)):
                if new is None:
                    self.sets.pop(key, None)
                else:
                    self.sets[key] = found.metadata.name
                self._enqueue(key)

    def on_replica_object(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        found = new or old
        assert found is not None
        meta = found.metadata
        workload = self._caches.sets.get(meta.namespace, meta.labels.get(labels.PART_OF, ""))
        if workload is not None and (key := owning_graph(workload.metadata)):
            self._enqueue(key)

    def on_child(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        found = new or old
        assert found is not None
        if name := found.metadata.labels.get(keys.GRAPH):
            self._enqueue(GraphKey(found.metadata.namespace, name))
        elif old is None:
            self._enqueue_failed(found.metadata.namespace)  # a deployment may wait for this claim

    def on_template(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """A new ResourceClaimTemplate: GPUs may be counted from it. Its spec is immutable."""
        if old is None and new is not None:
            self._enqueue_failed(new.metadata.namespace)

    def on_secret(self, old: PullSecret | None, new: PullSecret | None) -> None:
        """A new or changed image pull Secret: pods that have not started may need it."""
        if new is None or (old is not None and old.registries == new.registries):
            return
        for stored in self._graph_caches.graphs:
            if stored.metadata.namespace == new.metadata.namespace:
                self._enqueue(GraphKey(stored.metadata.namespace, stored.metadata.name))

    def on_kind_available(self) -> None:
        """A kind is served now: failed deployments may have waited for it."""
        self._enqueue_failed()

    def on_topology(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """A topology changed: failed deployments may have waited for it."""
        if old is not None and new is not None and old.metadata.generation == new.metadata.generation:
            return
        self._enqueue_failed()

    def on_kueue(self, old: KueueTopology | None, new: KueueTopology | None) -> None:
        if old is None or new is None or old.labels != new.labels:
            self.on_domains()

    def on_domains(self) -> None:
        """Topology domains changed: enqueues deployments without Grove, whose own status reports whether
        their domains exist. For the others, the status of the set reports it."""
        for stored in self._graph_caches.graphs:
            if provider(stored.metadata.annotations) != keys.GROVE:
                self._enqueue(GraphKey(stored.metadata.namespace, stored.metadata.name))

    def _enqueue_failed(self, namespace: str = "") -> None:
        for stored in self._graph_caches.graphs:
            meta = stored.metadata
            if stored.status.state == "failed" and namespace in ("", meta.namespace):
                self._enqueue(GraphKey(meta.namespace, meta.name))


def _changed(old: StoredGraph, new: StoredGraph) -> bool:
    """Whether spec or metadata changed. The generation counts changes of the spec only."""
    before, after = old.metadata, new.metadata
    return (
        (before.uid, before.generation, before.deletion_timestamp)
        != (after.uid, after.generation, after.deletion_timestamp)
        or before.annotations != after.annotations
        or before.labels != after.labels
    )
