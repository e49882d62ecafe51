"""Which change wakes which DynamoGraphDeployment. A change of its status alone wakes nobody, unless somebody
else wrote it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grove.api import labels
from grove.api.sets import PodCliqueSet
from grove.dynamo import keys
from grove.dynamo.kueue import KueueTopology
from grove.dynamo.registries import PullSecret
from grove.dynamo.seen import StoredGraph
from grove.dynamo.surroundings import provider
from grove.kube.cache import Cache, HasMetadata
from grove.operator.caches import Caches
from grove.operator.graph_caches import GraphCaches, GraphKey, graph_of
from grove.operator.nodes import Nodes

Wake = Callable[[GraphKey], None]


def wire(caches: Caches, known: GraphCaches, nodes: Nodes, wake: Wake) -> dict[GraphKey, str]:
    """From now on, changes wake keys; what is there already is news to whoever begins now. Returns the names
    of the deployments' sets, kept up to date."""
    waker = _Waker(caches, known, wake)
    _follow(known.graphs, waker.on_graph)
    _follow(caches.sets, waker.on_set)
    for part in (caches.cliques, caches.groups):
        part.subscribe(waker.on_part)
    for cache in known.children.values():
        cache.subscribe(waker.on_child)
        cache.on_settled(waker.on_sight)
    nodes.subscribe(waker.on_domains)
    if known.kueue is not None:
        known.kueue.subscribe(waker.on_kueue)
        known.kueue.on_settled(waker.on_domains)
    if known.secrets is not None:
        known.secrets.subscribe(waker.on_secret)
    caches.claim_templates.subscribe(waker.on_template)
    for topologies in (caches.topologies, caches.topology_bindings):
        topologies.subscribe(waker.on_topology)
    return waker.sets


def _follow(cache: Cache[Any], tell: Callable[[Any, Any], None]) -> None:
    for found in cache:
        tell(None, found)
    cache.subscribe(tell)


class _Waker:
    def __init__(self, caches: Caches, known: GraphCaches, wake: Wake) -> None:
        self._caches, self._known, self._wake = caches, known, wake
        self.sets: dict[GraphKey, str] = {}

    def on_graph(self, old: StoredGraph | None, new: StoredGraph | None) -> None:
        found = new or old
        assert found is not None
        key = GraphKey(found.metadata.namespace, found.metadata.name)
        if old is None or new is None or _changed(old, new) or self._not_ours(old, new):
            self._wake(key)

    def _not_ours(self, old: StoredGraph, new: StoredGraph) -> bool:
        """What we write into a status we know from the reply."""
        return old.status != new.status and not self._known.graphs.replying

    def on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        for found in (old, new):
            if found is not None and (key := graph_of(found.metadata)):
                if new is None:
                    self.sets.pop(key, None)
                else:
                    self.sets[key] = found.metadata.name
                self._wake(key)

    def on_part(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        found = new or old
        assert found is not None
        meta = found.metadata
        workload = self._caches.sets.get(meta.namespace, meta.labels.get(labels.PART_OF, ""))
        if workload is not None and (key := graph_of(workload.metadata)):
            self._wake(key)

    def on_child(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        found = new or old
        assert found is not None
        if name := found.metadata.labels.get(keys.GRAPH):
            self._wake(GraphKey(found.metadata.namespace, name))
        elif old is None:
            self._wake_failed(found.metadata.namespace)  # it may be the claim that one waits for

    def on_template(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """It may be the one that GPUs are to be counted by; it never changes."""
        if old is None and new is not None:
            self._wake_failed(new.metadata.namespace)

    def on_secret(self, old: PullSecret | None, new: PullSecret | None) -> None:
        """Pods that have not started may need it; one that goes is of no use to anybody."""
        if new is None or (old is not None and old.registries == new.registries):
            return
        for stored in self._known.graphs:
            if stored.metadata.namespace == new.metadata.namespace:
                self._wake(GraphKey(stored.metadata.namespace, stored.metadata.name))

    def on_sight(self) -> None:
        """Deployments that wait for a kind that has come."""
        self._wake_failed()

    def on_topology(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Deployments that wait for one."""
        if old is not None and new is not None and old.metadata.generation == new.metadata.generation:
            return
        self._wake_failed()

    def on_kueue(self, old: KueueTopology | None, new: KueueTopology | None) -> None:
        if old is None or new is None or old.labels != new.labels:
            self.on_domains()

    def on_domains(self) -> None:
        """Those that tell by themselves whether their domains exist; of the others, Grove tells it."""
        for stored in self._known.graphs:
            if provider(stored.metadata.annotations) != keys.GROVE:
                self._wake(GraphKey(stored.metadata.namespace, stored.metadata.name))

    def _wake_failed(self, namespace: str = "") -> None:
        for stored in self._known.graphs:
            meta = stored.metadata
            if stored.status.state == "failed" and namespace in ("", meta.namespace):
                self._wake(GraphKey(meta.namespace, meta.name))


def _changed(old: StoredGraph, new: StoredGraph) -> bool:
    """The generation counts changes of the spec; of the metadata, nobody counts the changes."""
    before, after = old.metadata, new.metadata
    return (
        (before.uid, before.generation, before.deletion_timestamp)
        != (after.uid, after.generation, after.deletion_timestamp)
        or before.annotations != after.annotations
        or before.labels != after.labels
    )
