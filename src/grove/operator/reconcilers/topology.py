"""Reconciles topologies: one key for each name. Writes schedulers' topology objects and our statuses."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from grove.api.intents import Intent, ObjectRef
from grove.api.types.clustertopology import ClusterTopologyBinding
from grove.api.types.kind import ForeignKind
from grove.kube.executor.outcome import IntentState
from grove.logger import get_logger
from grove.operator.caches.owners import owning_topology
from grove.operator.caches.registry import Caches
from grove.operator.engine.reconciler import PassResult, Reconciler
from grove.operator.keys import TopologyKey
from grove.operator.observers.topology_usage import TopologyUsageObserver
from grove.plan.model import Plan
from grove.plan.topology import SchedulerTopology, TopologyUsage, plan_shadowed, plan_topology
from grove.plan.writes.builders import reference
from grove.schedulers.backend import AnyTopology, SchedulerBackend, SchedulerObject
from grove.schedulers.registry import SchedulerBackends

log = get_logger("grove.operator")


class TopologySnapshot(Struct, frozen=True):
    """A topology by name, with the objects of schedulers for it."""

    topology: AnyTopology | None
    """None if it was deleted."""
    scheduler_topologies: tuple[SchedulerTopology, ...] = ()
    usage: TopologyUsage = TopologyUsage()
    shadowed: ClusterTopologyBinding | None = None
    """A binding of the same name, which is not used."""
    orphans: tuple[tuple[SchedulerBackend, SchedulerObject], ...] = ()
    """Objects of schedulers for a topology that was deleted."""


class TopologyReconciler(Reconciler[TopologyKey, TopologySnapshot]):
    """Keeps the topology objects of schedulers in sync with our topologies."""

    def __init__(
        self,
        caches: Caches,
        in_use: SchedulerBackends | None,
        usage: TopologyUsageObserver,
    ) -> None:
        self._caches, self._usage = caches, usage
        self._topology_backends = in_use.topology_aware if in_use else ()
        self._enabled = frozenset(in_use.by_name) if in_use else frozenset()

    async def observe(self, key: TopologyKey) -> TopologySnapshot | None:
        binding = self._caches.topology_bindings.get("", key.name)
        topology = self._caches.topologies.get("", key.name) or binding
        if topology is None:
            self._usage.forget(key.name)
            orphans = tuple(self._orphans(key))
            return TopologySnapshot(None, orphans=orphans) if orphans else None
        references = dict(topology.spec.references)
        scheduler_topologies = tuple(
            self._scheduler_topology(backend, kind, topology, references.get(backend.name, ""))
            for backend, kind in self._topology_backends
        )
        shadowed = binding if binding is not topology else None
        return TopologySnapshot(topology, scheduler_topologies, self._usage.of(topology), shadowed)

    def plan(self, snapshot: TopologySnapshot, now: float) -> Plan:
        if snapshot.topology is None:
            return Plan(tuple(_delete_orphans(snapshot)))
        plan = plan_topology(
            snapshot.topology, snapshot.scheduler_topologies, self._enabled, now, snapshot.usage
        )
        if snapshot.shadowed is None:
            return plan
        shadowed = plan_shadowed(snapshot.shadowed, now)
        return replace(plan, status_updates=(*plan.status_updates, *shadowed.status_updates))

    def about(self, snapshot: TopologySnapshot) -> ObjectRef | None:
        return reference(snapshot.topology) if snapshot.topology is not None else None

    def with_errors(self, snapshot: TopologySnapshot, plan: Plan, result: PassResult, now: float) -> Plan:
        """The plan with the errors in the entries of their schedulers."""
        errors = {
            each.intent.target.api_version: str(each.error)
            for each in result.outcome.results
            if each.state is IntentState.FAILED
        }
        if not errors or snapshot.topology is None:
            return plan
        failed = tuple(
            replace(each, error=errors.get(kind.api_version, ""))
            for each, (_, kind) in zip(snapshot.scheduler_topologies, self._topology_backends, strict=True)
        )
        return self.plan(replace(snapshot, scheduler_topologies=failed), now)

    def _scheduler_topology(
        self, backend: SchedulerBackend, kind: ForeignKind, topology: AnyTopology, reference: str
    ) -> SchedulerTopology:
        cache = self._caches.scheduler_topologies[kind]
        try:
            own_name = backend.topology_name(topology)
        except Exception:  # raised by a backend of another project: the plan gets it again and reports it
            own_name = topology.metadata.name
        own = cache.get("", own_name)
        if not reference:
            return SchedulerTopology(backend, cache.synced.is_set(), "", own)
        former = own if own and reference != own_name and _controlled(own, topology) else None
        found = cache.get("", reference)
        return SchedulerTopology(backend, cache.synced.is_set(), reference, found, former)

    def _orphans(self, key: TopologyKey) -> Iterator[tuple[SchedulerBackend, SchedulerObject]]:
        """The scheduler objects of a topology that is gone, also if it was deleted while no operator was
        running."""
        for backend, kind in self._topology_backends:
            found = self._caches.scheduler_topologies[kind].get("", key.name)
            if found is not None and owning_topology(found) and not found.metadata.deletion_timestamp:
                yield backend, found


def _delete_orphans(snapshot: TopologySnapshot) -> Iterator[Intent]:
    for backend, found in snapshot.orphans:
        try:
            yield from backend.on_topology_delete(found.metadata.name, found)
        except Exception as problem:  # raised by a backend of another project
            why, about = f"{type(problem).__name__}: {problem}", f"{backend.name} {found.metadata.name}"
            log.warning("scheduler topology not deleted", key=about, action="continue", reason=why)


def _controlled(found: SchedulerObject, topology: AnyTopology) -> bool:
    owners = found.metadata.owner_references
    return any(owner.controller and owner.uid == topology.metadata.uid for owner in owners)
