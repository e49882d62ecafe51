"""Reads what the status of a topology reports about the cluster: its nodes, and the sets that refer to it."""

from __future__ import annotations

from grove.operator.caches.registry import BY_TOPOLOGY, Caches
from grove.plan.topology import TopologyUsage
from grove.schedulers.backend import AnyTopology


class TopologyUsageObserver:
    """Reads the usage of topologies."""

    def __init__(self, caches: Caches) -> None:
        self._caches, self._nodes = caches, caches.nodes

    def of(self, topology: AnyTopology) -> TopologyUsage:
        """The usage of a topology. The labels of its levels are watched from now on; until they are listed,
        the nodes are None."""
        keys = [level.key for level in topology.spec.levels]
        self._nodes.require(keys)
        users = self._caches.sets.by_index(BY_TOPOLOGY, topology.metadata.name)
        named = tuple(f"{each.metadata.namespace}/{each.metadata.name}" for each in users)
        return TopologyUsage(self._nodes.labels(keys), named)
