"""Reads what the status of a topology reports about the cluster: its nodes, the sets that refer to it, and
what is free."""

from __future__ import annotations

from grove.operator.caches.registry import BY_TOPOLOGY, Caches
from grove.operator.observers.cluster.free_slots import CountedSlots, FreeSlotsObserver
from grove.plan.topology import TopologyUsage
from grove.schedulers.backend import AnyTopology

_NOT_COUNTED = CountedSlots(())


class TopologyUsageObserver:
    """Reads the usage of topologies. `free_slots`: None if the operator places no gangs."""

    def __init__(self, caches: Caches, free_slots: FreeSlotsObserver | None = None) -> None:
        self._caches, self._nodes, self._free_slots = caches, caches.nodes, free_slots

    def of(self, topology: AnyTopology) -> TopologyUsage:
        """The usage of a topology. The labels of its levels are watched from now on; until they are listed,
        the nodes are None."""
        keys = [level.key for level in topology.spec.levels]
        self._nodes.require(keys)
        users = self._caches.sets.by_index(BY_TOPOLOGY, topology.metadata.name)
        named = tuple(f"{each.metadata.namespace}/{each.metadata.name}" for each in users)
        free = self._free_slots.of(topology) if self._free_slots is not None else _NOT_COUNTED
        return TopologyUsage(self._nodes.labels(keys), named, free.slots, free.due)

    def forget(self, topology: str) -> None:
        """A topology was deleted."""
        if self._free_slots is not None:
            self._free_slots.forget(topology)
