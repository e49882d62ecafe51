"""The watches of where gangs are: the status of a gang follows the labels of the nodes of its pods."""

from __future__ import annotations

from collections.abc import Callable

from grove import timing
from grove.operator.caches.registry import BY_NODE, Caches
from grove.operator.keys import ReplicaKey, replica_of
from grove.operator.watches.table import Watch


def placement_watches(
    caches: Caches, subscribe: Callable[[Callable[[str], None]], None]
) -> tuple[Watch, ...]:
    """The watches of nodes, for the replicas that have pods on them. `subscribe` takes a listener for the
    names of nodes whose labels change."""

    def replicas_on(node: str) -> set[ReplicaKey]:
        found = (replica_of(pod.metadata) for pod in caches.pods.by_index(BY_NODE, node))
        return {key for key in found if key is not None}

    return (Watch(subscribe, replicas_on, delay=timing.BATCH_DELAY),)
