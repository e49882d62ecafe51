"""The watches of DynamoGraphDeployments.

A change of the deployment's own status enqueues nothing, unless another writer made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from grove.api.naming import labels
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo import keys
from grove.dynamo.api.kueue_topology import KueueTopology
from grove.dynamo.api.kueue_workload import KueueWorkload
from grove.dynamo.api.pull_secret import PullSecret
from grove.dynamo.context import provider
from grove.dynamo.snapshot import StoredGraph
from grove.kube.cache.cache import HasMetadata
from grove.kube.client.resource import PODS
from grove.operator.caches.dynamo import LEADER_WORKER_SETS, GraphCaches
from grove.operator.caches.owners import owning_graph
from grove.operator.caches.predicates import (
    created,
    spec_changed,
    spec_or_metadata_changed,
    status_changed_by_others,
)
from grove.operator.caches.registry import Caches
from grove.operator.keys import GraphKey
from grove.operator.watches.table import Watch

Keys = Iterator[GraphKey]


def graph_watches(caches: Caches, graph_caches: GraphCaches) -> tuple[Watch, ...]:
    """The watches of DynamoGraphDeployments."""
    find, graphs, children = _GraphKeys(caches, graph_caches), graph_caches.graphs, graph_caches.children
    optional: list[Watch] = []
    if graph_caches.kueue is not None:
        optional.append(Watch(graph_caches.kueue, find.without_grove, kueue_levels_changed))
        optional.append(Watch(graph_caches.kueue.on_synced_or_absent, find.without_grove))
    if graph_caches.kueue_workloads is not None and graph_caches.pods is not None:
        optional.append(Watch(graph_caches.kueue_workloads, find.of_queued, admission_changed))
        optional.append(Watch(graph_caches.kueue_workloads.on_synced_or_absent, find.without_grove))
        optional.append(Watch(graph_caches.pods, find.of_pod, created))
    if graph_caches.secrets is not None:
        optional.append(Watch(graph_caches.secrets, find.in_namespace, registries_changed))
    return (
        Watch(graphs, graph_itself, spec_or_metadata_changed, replay=True),
        Watch(graphs, graph_itself, status_changed_by_others(graphs)),
        Watch(caches.sets, owning_graphs, replay=True),
        Watch(caches.cliques, find.of_replica_object),
        Watch(caches.groups, find.of_replica_object),
        *chain.from_iterable(
            (Watch(child, find.of_child), Watch(child.on_synced_or_absent, find.failed))
            for child in children.values()
        ),
        Watch(caches.nodes.subscribe, find.without_grove),
        Watch(caches.claim_templates, find.failed_in_namespace, created),
        Watch(caches.topologies, find.failed, spec_changed),
        Watch(caches.topology_bindings, find.failed, spec_changed),
        *optional,
    )


def kueue_levels_changed(old: KueueTopology | None, new: KueueTopology | None) -> bool:
    """The node labels of a Kueue Topology changed."""
    return old is None or new is None or old.labels != new.labels


def admission_changed(old: KueueWorkload | None, new: KueueWorkload | None) -> bool:
    """Whether Kueue admits a Workload, or why not, changed; or the objects that it belongs to."""
    if old is None or new is None:
        return True
    owners = old.metadata.owner_references != new.metadata.owner_references
    return owners or old.refusal != new.refusal


def registries_changed(old: PullSecret | None, new: PullSecret | None) -> bool:
    """An image pull Secret is new or for other registries: pods that have not started may need it."""
    return new is not None and (old is None or old.registries != new.registries)


def graph_itself(old: StoredGraph | None, new: StoredGraph | None) -> tuple[GraphKey]:
    """The deployment that changed."""
    found = new or old
    assert found is not None
    return (_key_of(found),)


def owning_graphs(old: PodCliqueSet | None, new: PodCliqueSet | None) -> set[GraphKey]:
    """The deployment that owns a set, or owned it before."""
    return {key for found in (old, new) if found is not None and (key := owning_graph(found.metadata))}


class _GraphKeys:
    """Looks up the deployments that depend on an object."""

    def __init__(self, caches: Caches, graph_caches: GraphCaches) -> None:
        self._sets, self._graphs = caches.sets, graph_caches.graphs
        self._owners = {
            PODS.kind: graph_caches.pods,
            LEADER_WORKER_SETS.kind: graph_caches.children.get(LEADER_WORKER_SETS),
        }

    def of_replica_object(self, old: HasMetadata | None, new: HasMetadata | None) -> Keys:
        """The deployment that owns the set of a clique or group."""
        found = new or old
        assert found is not None
        meta = found.metadata
        workload = self._sets.get(meta.namespace, meta.labels.get(labels.PART_OF, ""))
        if workload is not None and (key := owning_graph(workload.metadata)):
            yield key

    def of_child(self, old: HasMetadata | None, new: HasMetadata | None) -> Keys:
        """The deployment that an object is labelled with; failed ones may wait for a new object without the
        label, such as a claim."""
        found = new or old
        assert found is not None
        if name := found.metadata.labels.get(keys.GRAPH):
            yield GraphKey(found.metadata.namespace, name)
        elif old is None:
            yield from self.failed_in_namespace(old, found)

    def of_queued(self, old: KueueWorkload | None, new: KueueWorkload | None) -> Keys:
        """The deployments of the pods and LeaderWorkerSets that a Workload of Kueue belongs to."""
        found = new or old
        assert found is not None
        for owner in found.metadata.owner_references:
            cache = self._owners.get(owner.kind)
            known = cache.get(found.metadata.namespace, owner.name) if cache is not None else None
            if known is not None and known.metadata.uid == owner.uid:
                yield from self.of_pod(None, known)

    def of_pod(self, old: HasMetadata | None, new: HasMetadata | None) -> Keys:
        """The deployment without Grove that a pod is labelled with."""
        found = new or old
        assert found is not None
        stored = self._graphs.get(found.metadata.namespace, found.metadata.labels.get(keys.GRAPH, ""))
        if stored is not None and provider(stored.metadata.annotations) != keys.GROVE:
            yield _key_of(stored)

    def failed(self, *_event: object) -> Keys:
        """All failed deployments: what they may have waited for, a kind or a topology, is there now."""
        return (_key_of(stored) for stored in self._graphs if stored.status.state == "failed")

    def failed_in_namespace(self, _old: HasMetadata | None, new: HasMetadata) -> Keys:
        """The failed deployments of a namespace, which may have waited for the new object: a claim, or a
        ResourceClaimTemplate from which GPUs are counted."""
        return (key for key in self.failed() if key.namespace == new.metadata.namespace)

    def in_namespace(self, _old: HasMetadata | None, new: HasMetadata) -> Keys:
        """All deployments of a namespace."""
        return (key for key in map(_key_of, self._graphs) if key.namespace == new.metadata.namespace)

    def without_grove(self, *_event: object) -> Keys:
        """Deployments without Grove, whose own status reports whether their topology domains exist. For the
        others, the status of the set reports it."""
        for stored in self._graphs:
            if provider(stored.metadata.annotations) != keys.GROVE:
                yield _key_of(stored)


def _key_of(stored: StoredGraph) -> GraphKey:
    return GraphKey(stored.metadata.namespace, stored.metadata.name)
