"""The watches of node labels: whether the topology constraints of a gang hold follows the labels of the nodes
of its pods."""

from __future__ import annotations

from collections.abc import Iterator

from grove import timing
from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.caches.registry import BY_NODE, Caches
from grove.operator.keys import ReplicaKey, SetKey, replica_of
from grove.operator.watches.enqueue_slices import FanOut, all_replicas
from grove.operator.watches.table import Watch
from grove.topology.fallbacks import topology_names


def node_label_watches(caches: Caches) -> tuple[Watch, ...]:
    """The watches of node labels, for sets with topology constraints."""
    find = _ConstrainedReplicas(caches)
    return (
        Watch(caches.nodes.subscribe_labels, find.on_node, delay=timing.BATCH_DELAY),
        Watch(caches.nodes.subscribe_lists, find.all),
    )


class _ConstrainedReplicas:
    """Looks up the replicas of sets with topology constraints."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def on_node(self, node: str) -> Iterator[ReplicaKey]:
        """Those that have pods on a node."""
        for key in {replica_of(pod.metadata) for pod in self._caches.pods.by_index(BY_NODE, node)}:
            if key is not None and _is_constrained(self._caches.sets.get(key.namespace, key.set_name)):
                yield key

    def all(self) -> Iterator[FanOut]:
        """All: labels that their levels need are listed now."""
        for workload in self._caches.sets:
            if _is_constrained(workload):
                meta = workload.metadata
                yield all_replicas(self._caches, SetKey(meta.namespace, meta.name), workload)


def _is_constrained(workload: PodCliqueSet | None) -> bool:
    return workload is not None and bool(topology_names(workload.spec.template))
