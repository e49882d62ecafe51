"""Looks up the topology that a set refers to, of either kind."""

from __future__ import annotations

from grove.api.types.podcliqueset import PodCliqueSet, PodCliqueSetTemplate
from grove.operator.caches.registry import Caches
from grove.topology.constraints import ResolvedTopology, read, topology_name_of
from grove.topology.fallbacks import attempts, fallbacks_of


class TopologyLookup:
    """The topologies of the cluster, by name."""

    def __init__(self, caches: Caches, *, enabled: bool) -> None:
        self._caches, self._enabled = caches, enabled

    def of(self, workload: PodCliqueSet) -> ResolvedTopology | None:
        """The topology of a set; None if topology-aware scheduling is disabled."""
        if not self._enabled:
            return None
        return self._read(workload.spec.template)

    def of_fallbacks(self, workload: PodCliqueSet) -> tuple[ResolvedTopology, ...]:
        """The topologies of the fallbacks of a set's constraint, in order."""
        if not self._enabled or not fallbacks_of(workload.spec.template):
            return ()
        return tuple(map(self._read, attempts(workload.spec.template)))[1:]

    def _read(self, template: PodCliqueSetTemplate) -> ResolvedTopology:
        name = topology_name_of(template)
        found = self._caches.topologies.get("", name) or self._caches.topology_bindings.get("", name)
        return read(name, found.spec if found is not None else None)
