"""Reconciles topologies: one key for each name. Writes schedulers' topology objects and our statuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import structlog

from grove.api.conditions import ConditionType
from grove.api.event_reasons import EventReason, EventReporter
from grove.api.intents import EventRecord, Intent, ObjectRef
from grove.api.types.kind import ForeignKind
from grove.kube.executor.keyed_executor import KeyedExecutor
from grove.kube.executor.outcome import IntentState
from grove.operator.caches.registry import Caches, owning_topology
from grove.operator.engine.status_publisher import status_writes
from grove.operator.keys import Key, TopologyKey
from grove.operator.observers.topology_usage import TopologyUsageObserver
from grove.plan.model import Plan, StatusUpdate
from grove.plan.status.conditions import find
from grove.plan.topology import SchedulerTopology, plan_shadowed, plan_topology
from grove.schedulers.backend import AnyTopology, SchedulerBackend, SchedulerObject
from grove.schedulers.registry import SchedulerBackends

log = structlog.get_logger("grove.operator")


class TopologyReconciler:
    """Keeps the topology objects of schedulers in sync with our topologies."""

    def __init__(
        self,
        caches: Caches,
        executor: KeyedExecutor[Key],
        in_use: SchedulerBackends | None,
        emit: Callable[[EventRecord], None],
        usage: TopologyUsageObserver,
    ) -> None:
        self._caches, self._executor, self._emit = caches, executor, emit
        self._usage = usage
        self._topology_backends = in_use.topology_aware if in_use else ()
        self._enabled = frozenset(in_use.by_name) if in_use else frozenset()
        self._errors: dict[TopologyKey, dict[str, str]] = {}
        """The errors of the latest pass, by API version of the scheduler's object."""

    async def reconcile(self, key: TopologyKey, now: float) -> tuple[bool, bool]:
        """One pass over one name. Returns whether it succeeded, and whether another pass is due."""
        topology = self._topology(key)
        if topology is None:
            self._errors.pop(key, None)
            return await self._execute(key, tuple(self._orphaned(key))), False
        plan = self._plan(key, topology, now)
        succeeded = await self._execute(key, plan.intents)
        if plan.intents and succeeded:
            return True, True  # the next pass writes the status from the replies
        if not succeeded:
            plan = self._plan(key, topology, now)  # again, with the error
        status_updates = [*plan.status_updates, *self._plan_shadowed(key, topology, now)]
        outcome = await self._executor.execute(key, status_writes(status_updates))
        for status_update in status_updates if outcome.done else ():
            self._emit_events(topology, status_update)
        return succeeded and not outcome.failed, outcome.outdated

    def _topology(self, key: TopologyKey) -> AnyTopology | None:
        return self._caches.topologies.get("", key.name) or self._caches.topology_bindings.get("", key.name)

    def _plan(self, key: TopologyKey, topology: AnyTopology, now: float) -> Plan:
        references, errors = dict(topology.spec.references), self._errors.get(key, {})
        scheduler_topologies_of = [
            self._scheduler_topology(
                backend, kind, topology, references.get(backend.name, ""), errors.get(kind.api_version, "")
            )
            for backend, kind in self._topology_backends
        ]
        return plan_topology(topology, scheduler_topologies_of, self._enabled, now, self._usage.of(topology))

    def _scheduler_topology(
        self,
        backend: SchedulerBackend,
        kind: ForeignKind,
        topology: AnyTopology,
        reference: str,
        error: str,
    ) -> SchedulerTopology:
        cache = self._caches.scheduler_topologies[kind]
        try:
            own_name = backend.topology_name(topology)
        except Exception:  # raised by a backend of another project: the plan gets it again and reports it
            own_name = topology.metadata.name
        own = cache.get("", own_name)
        if not reference:
            return SchedulerTopology(backend, cache.synced.is_set(), "", own, error=error)
        former = own if own and reference != own_name and _controlled(own, topology) else None
        found = cache.get("", reference)
        return SchedulerTopology(backend, cache.synced.is_set(), reference, found, former, error)

    def _orphaned(self, key: TopologyKey) -> Iterator[Intent]:
        """Deletes the scheduler objects of a topology that is gone, also if it was deleted while no operator
        was running."""
        for backend, kind in self._topology_backends:
            found = self._caches.scheduler_topologies[kind].get("", key.name)
            if found is None or not owning_topology(found) or found.metadata.deletion_timestamp:
                continue
            try:
                yield from backend.on_topology_delete(key.name, found)
            except Exception as problem:  # raised by a backend of another project
                why, about = f"{type(problem).__name__}: {problem}", f"{backend.name} {key.name}"
                log.warning("scheduler topology not deleted", key=about, action="continue", reason=why)

    async def _execute(self, key: TopologyKey, writes: tuple[Intent, ...]) -> bool:
        self._errors.pop(key, None)
        if not writes:
            return True
        outcome = await self._executor.execute(key, writes)
        for result in outcome.results:
            if result.state is IntentState.FAILED:
                why = str(result.error)
                self._errors.setdefault(key, {})[result.intent.target.api_version] = why
                log.warning("scheduler topology not written", key=str(key), action="retry", reason=why)
        return not outcome.failed and not outcome.outdated

    def _plan_shadowed(self, key: TopologyKey, used: AnyTopology, now: float) -> tuple[StatusUpdate, ...]:
        binding = self._caches.topology_bindings.get("", key.name)
        return (
            plan_shadowed(binding, now).status_updates if binding is not None and binding is not used else ()
        )

    def _emit_events(self, topology: AnyTopology, status_update: StatusUpdate) -> None:
        """Emit an event when the scheduler topologies drift from ours, or are in sync again."""
        drift = ConditionType.SCHEDULER_TOPOLOGY_DRIFT
        before, after = (
            find(status_update.current.conditions, drift),
            find(status_update.desired.conditions, drift),
        )
        if after is None or after.status == "Unknown" or (before and before.status == after.status):
            return
        bad = after.status == "True"
        kind, meta = type(topology).KIND, topology.metadata
        self._emit(
            EventRecord(
                ObjectRef(kind.api_version, kind.name, meta.name, uid=meta.uid),
                (EventReason.TOPOLOGY_DRIFT if bad else EventReason.TOPOLOGY_IN_SYNC).value,
                after.message,
                action="Sync",
                warning=bad,
                reporter=EventReporter.TOPOLOGY.value,
            )
        )


def _controlled(found: SchedulerObject, topology: AnyTopology) -> bool:
    owners = found.metadata.owner_references
    return any(owner.controller and owner.uid == topology.metadata.uid for owner in owners)
