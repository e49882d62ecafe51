"""Looks up the topology that a set refers to, of either kind."""

from __future__ import annotations

from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.caches.registry import Caches
from grove.topology.constraints import ResolvedTopology, read, topology_name_of


class TopologyLookup:
    """The topologies of the cluster, by name."""

    def __init__(self, caches: Caches, *, enabled: bool) -> None:
        self._caches, self._enabled = caches, enabled

    def of(self, workload: PodCliqueSet) -> ResolvedTopology | None:
        """The topology of a set; None if topology-aware scheduling is disabled."""
        if not self._enabled:
            return None
        name = topology_name_of(workload.spec.template)
        found = self._caches.topologies.get("", name) or self._caches.topology_bindings.get("", name)
        return read(name, found.spec if found is not None else None)
