"""Reads what the status of a topology reports about the cluster: its nodes, and the sets that refer to it.

Nothing depends on it, so it is updated with a delay: changes within a few seconds are one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.caches.nodes import Nodes
from grove.operator.caches.registry import BY_TOPOLOGY, Caches
from grove.operator.keys import TopologyKey
from grove.plan.topology import TopologyUsage
from grove.schedulers.backend import AnyTopology
from grove.topology.constraints import topology_name_of

UPDATE_DELAY = 5.0
"""Seconds from a change to the update of the status."""


class TopologyUsageObserver:
    """Reads the usage of topologies, and enqueues a topology when its usage changes."""

    def __init__(self, caches: Caches, nodes: Nodes, enqueue: Callable[[TopologyKey, float], None]) -> None:
        self._caches, self._nodes, self._enqueue = caches, nodes, enqueue
        nodes.subscribe(self._on_nodes)
        caches.sets.subscribe(self._on_set)

    def of(self, topology: AnyTopology) -> TopologyUsage:
        """The usage of a topology. The labels of its levels are watched from now on; until they are listed,
        the nodes are None."""
        keys = [level.key for level in topology.spec.levels]
        self._nodes.require(keys)
        users = self._caches.sets.by_index(BY_TOPOLOGY, topology.metadata.name)
        named = tuple(f"{each.metadata.namespace}/{each.metadata.name}" for each in users)
        return TopologyUsage(self._nodes.labels(keys), named)

    def _on_nodes(self) -> None:
        for topology in (*self._caches.topologies, *self._caches.topology_bindings):
            self._enqueue_later(topology.metadata.name)

    def _on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        named = {topology_name_of(found.spec.template) if found is not None else "" for found in (old, new)}
        for name in named - {""} if len(named) > 1 else ():
            self._enqueue_later(name)

    def _enqueue_later(self, name: str) -> None:
        self._enqueue(TopologyKey(name), asyncio.get_running_loop().time() + UPDATE_DELAY)
