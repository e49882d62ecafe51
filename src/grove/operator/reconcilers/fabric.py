"""Reconciles fabric domains: one key for each. Emits events on the sets that require a domain, and keeps what
their status reports about it."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from msgspec.structs import replace

from grove.api.intents import Create, DeleteCollection, EventRecord
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.resolved import DomainReport, ResolvedDomain
from grove.kube.executor.keyed_executor import KeyedExecutor
from grove.kube.executor.outcome import IntentState, Outcome
from grove.operator.caches.registry import Caches
from grove.operator.engine.events import events_of_plan
from grove.operator.keys import DomainKey, Key, SetKey
from grove.operator.metrics.fabric import domain_failures
from grove.operator.observers.fabric import FabricLookup
from grove.operator.watches.fabric import EnqueueKey, register_fabric_handlers
from grove.plan.fabric.events import creation_failure, failure_events
from grove.plan.fabric.model import DomainSnapshot
from grove.plan.fabric.planner import plan_domain
from grove.plan.model import Plan, PlannedEvent

log = structlog.get_logger("grove.operator")


class FabricReconciler:
    """Creates, updates and deletes domains, and reports their state to the sets that require them."""

    def __init__(
        self,
        caches: Caches,
        executor: KeyedExecutor[Key],
        emit: Callable[[EventRecord], None],
        clock: Callable[[], float],
    ) -> None:
        self._caches, self._executor, self._emit, self._clock = caches, executor, emit, clock
        self._enqueue: EnqueueKey = lambda _: None
        self.fabric_lookup = FabricLookup(caches)
        self._reported: dict[DomainKey, set[tuple[str, ...]]] = {}
        """Set UID, reason and domain UID of emitted events, which are not repeated while the cause lasts."""
        self._reports: dict[DomainKey, DomainReport] = {}
        """What the status of sets reports about domains; domains without a report are left out."""

    def register_handlers(self, enqueue: EnqueueKey) -> None:
        """Map watch events to domain keys, and changes of domains to the keys of sets and replicas."""
        self._enqueue = enqueue
        if len(self._caches.fabrics):
            register_fabric_handlers(self._caches, self.fabric_lookup, enqueue)

    def domain_observations(self, workload: PodCliqueSet) -> tuple[ResolvedDomain, ...]:
        """The state of each domain of a set, for the status of the set."""
        return self.fabric_lookup.of_set(workload, self._reports)

    async def reconcile(self, key: DomainKey) -> tuple[bool, float | None]:
        """One pass over one domain. Returns whether it succeeded, and when the next pass is due; enqueues the
        sets whose status must report the result."""
        snapshot, now = self.fabric_lookup.snapshot(key), self._clock()
        if snapshot is None:
            return True, None
        plan = plan_domain(snapshot, now)
        outcome = await self._executor.execute(key, plan.intents) if plan.intents else Outcome(())
        self._emit_events(key, plan, outcome)
        failure = self._emit_failures(key, snapshot, outcome)
        if self._record(key, replace(plan.report, failure=failure)):
            for consumer in snapshot.consumers:
                self._enqueue(SetKey(consumer.workload.metadata.namespace, consumer.workload.metadata.name))
        if not (snapshot.found or snapshot.consumers):
            self._reported.pop(key, None)
        if outcome.namespace_terminating:  # the sets that require it are deleted with the namespace
            return True, None
        succeeded = not outcome.failed and not outcome.outdated
        return succeeded, now if plan.intents and outcome.done else plan.requeue_at

    def _record(self, key: DomainKey, report: DomainReport) -> bool:
        """Store the report of a pass. Returns whether it changed."""
        before = self._reports.pop(key, DomainReport())
        if report != DomainReport():
            self._reports[key] = report
        return report != before

    def _emit_events(self, key: DomainKey, plan: Plan, outcome: Outcome) -> None:
        for record in events_of_plan(plan, outcome):
            self._emit(record)
        lasting = {_identity(event): event for event in plan.events if not event.intent}
        for identity, event in lasting.items():
            if identity not in self._reported.get(key, ()):
                self._emit_event(event)
        self._reported[key] = set(lasting)

    def _emit_failures(self, key: DomainKey, snapshot: DomainSnapshot, outcome: Outcome) -> LastError | None:
        """Log failed writes and emit events for them. Returns the last error of the domain, if it could not
        be created."""
        failure, before = None, self._reports.get(key, DomainReport()).failure
        for result in outcome.results if not outcome.namespace_terminating else ():
            intent = result.intent
            if result.state is not IntentState.FAILED or isinstance(intent, DeleteCollection):
                continue
            domain_failures.labels(key.vendor, type(intent).__name__.lower()).inc()
            log.warning("domain write failed", key=str(key), action=intent.id, reason=str(result.error))
            for event in failure_events(snapshot, intent, result.error):
                self._emit_event(event)
            if isinstance(intent, Create):
                failure = creation_failure(intent, result.error, before, self._clock())
        return failure

    def _emit_event(self, event: PlannedEvent) -> None:
        self._emit(
            EventRecord(
                event.regarding,
                event.reason,
                event.note,
                action="Sync",
                warning=event.warning,
                reporter=event.reporter,
            )
        )


def _identity(event: PlannedEvent) -> tuple[str, ...]:
    return event.regarding.uid, event.reason, event.identity
