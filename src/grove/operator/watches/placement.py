"""The watches of where gangs are: the status of a gang follows the labels of the nodes of its pods."""

from __future__ import annotations

from grove import timing
from grove.operator.caches.registry import BY_NODE, Caches
from grove.operator.keys import ReplicaKey, replica_of
from grove.operator.observers.cluster_view import ClusterView
from grove.operator.watches.table import Watch


def placement_watches(caches: Caches, view: ClusterView) -> tuple[Watch, ...]:
    """The watches of nodes, for the replicas that have pods on them."""

    def replicas_on(node: str) -> set[ReplicaKey]:
        found = (replica_of(pod.metadata) for pod in caches.pods.by_index(BY_NODE, node))
        return {key for key in found if key is not None}

    return (Watch(view.subscribe_labels, replicas_on, delay=timing.BATCH_DELAY),)
