"""Reconciles fabric domains: one key for each. Emits events on the sets that require a domain, and keeps what
their status reports about it."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from grove.api.error_codes import ErrorCode, Operation, describe
from grove.api.event_reasons import EventReason, EventReporter
from grove.api.intents import Create, Delete, DeleteCollection, EventRecord, Intent, ObjectRef
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import Scope
from grove.kube.executor.keyed_executor import KeyedExecutor
from grove.kube.executor.outcome import IntentState, Outcome
from grove.operator.caches.registry import Caches
from grove.operator.keys import DomainKey, Key, SetKey
from grove.operator.metrics.fabric import domain_failures
from grove.operator.observers.fabric import FabricLookup
from grove.operator.watches.fabric import domain_watches
from grove.operator.watches.table import Enqueue, register
from grove.plan.fabric.model import DomainConsumer, DomainPlan, DomainSnapshot
from grove.plan.fabric.planner import plan_domain
from grove.plan.fabric.status import DomainObservation
from grove.plan.timestamps import rfc3339

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
        self._enqueue: Enqueue = lambda *_: None
        self.fabric_lookup = FabricLookup(caches)
        self._reported: dict[DomainKey, set[tuple[str, ...]]] = {}
        """Domain UID, set UID and reason of emitted events, which are not repeated while the cause lasts."""
        self._failures: dict[DomainKey, LastError] = {}
        """The last error of domains that could not be created."""
        self._busy: dict[DomainKey, str] = {}
        """Domains with unschedulable pods, with a message that names the domains that occupy the nodes."""

    def register_watches(self, enqueue: Enqueue) -> None:
        """Map watch events to domain keys, and changes of domains to the keys of sets and replicas."""
        self._enqueue = enqueue
        register(domain_watches(self._caches, self.fabric_lookup), enqueue)

    def domain_observations(self, workload: PodCliqueSet) -> list[DomainObservation]:
        """The state of each domain of a set, for the status of the set."""
        return self.fabric_lookup.domain_observations(workload, self._failures, self._busy)

    async def reconcile(self, key: DomainKey) -> tuple[bool, float | None]:
        """One pass over one domain. Returns whether it succeeded, and when the next pass is due; enqueues the
        sets whose status must report the result."""
        snapshot, now = self.fabric_lookup.snapshot(key), self._clock()
        if snapshot is None:
            return True, None
        plan = plan_domain(snapshot, now)
        outcome = await self._executor.execute(key, plan.intents) if plan.intents else Outcome(())
        self._emit_remarks(key, snapshot, plan, outcome)
        failures_changed = self._record_failures(key, snapshot, outcome)
        if self._record_busy(key, plan) or failures_changed:
            for consumer in snapshot.consumers:
                self._enqueue(SetKey(consumer.workload.metadata.namespace, consumer.workload.metadata.name))
        if not (snapshot.found or snapshot.consumers):
            self._reported.pop(key, None)
        if outcome.namespace_terminating:  # the sets that require it are deleted with the namespace
            return True, None
        succeeded = not outcome.failed and not outcome.outdated
        return succeeded, now if plan.intents and outcome.done else plan.requeue_at

    def _record_busy(self, key: DomainKey, plan: DomainPlan) -> bool:
        """Store the message for the condition of sets about occupied nodes. Returns whether it changed."""
        busy = (remark.note for remark in plan.events if remark.reason is EventReason.IMEX_CHANNEL_BUSY)
        before, message = self._busy.pop(key, ""), next(busy, "")
        if message:
            self._busy[key] = message
        return message != before

    def _emit_remarks(
        self, key: DomainKey, snapshot: DomainSnapshot, plan: DomainPlan, outcome: Outcome
    ) -> None:
        done = {result.intent.id for result in outcome.results if result.state is IntentState.DONE}
        current: set[tuple[str, ...]] = set()
        for remark in plan.events:
            if remark.intent:
                if remark.intent in done:
                    self._emit_on_set(remark.workload, remark.reason, remark.note, remark.warning)
                continue
            uid = snapshot.found.metadata.uid if snapshot.found else ""
            identity = (uid, remark.workload.metadata.uid, remark.reason.value)
            current.add(identity)
            if identity not in self._reported.get(key, set()):
                self._emit_on_set(remark.workload, remark.reason, remark.note, remark.warning)
        self._reported[key] = current

    def _record_failures(self, key: DomainKey, snapshot: DomainSnapshot, outcome: Outcome) -> bool:
        """Log failed writes and emit events for them on each attempt: attempts become rare by back-off.
        Returns whether the last error of the domain changed."""
        before, now = self._failures.pop(key, None), rfc3339(self._clock())
        for result in outcome.results if not outcome.namespace_terminating else ():
            intent = result.intent
            if result.state is not IntentState.FAILED or isinstance(intent, DeleteCollection):
                continue
            domain_failures.labels(key.vendor, type(intent).__name__.lower()).inc()
            log.warning("domain write failed", key=str(key), action=intent.id, reason=str(result.error))
            if isinstance(intent, Create | Delete):
                for consumer in snapshot.consumers:
                    reason, note = _failure_event(snapshot, consumer, intent, result.error)
                    self._emit_on_set(consumer.workload, reason, note, warning=True)
            if isinstance(intent, Create):
                self._failures[key] = _failure(intent, str(result.error), before, now)
        return self._failures.get(key) != before

    def _emit_on_set(self, workload: PodCliqueSet, reason: EventReason, note: str, warning: bool) -> None:
        kind, meta = PodCliqueSet.KIND, workload.metadata
        self._emit(
            EventRecord(
                ObjectRef(kind.api_version, kind.name, meta.name, meta.namespace, meta.uid),
                reason.value,
                note,
                action="Sync",
                warning=warning,
                reporter=EventReporter.SET.value,
            )
        )


def _failure(intent: Create, cause: str, before: LastError | None, now: str) -> LastError:
    """The last error for the status of sets; an error that is known already keeps its timestamp."""
    code = ErrorCode.SYNC_COMPUTE_DOMAIN.value
    message = describe(Operation.SYNC, code, f"could not {intent.id}", cause)
    if before is not None and before.description == message:
        return before
    return LastError(code, message, now)


def _failure_event(
    snapshot: DomainSnapshot, consumer: DomainConsumer, intent: Intent, error: object
) -> tuple[EventReason, str]:
    """Reason and note of the event on a set about a failed write."""
    kind, name = snapshot.provider.api.name, snapshot.name
    if isinstance(intent, Create):
        shared = consumer.membership.requirement.scope is Scope.SHARED
        which = name if shared else f"for replica {consumer.membership.replicas[0]}"
        return EventReason.COMPUTE_DOMAIN_FAILED, f"Failed to create {kind} {which}: {error}"
    return EventReason.COMPUTE_DOMAIN_DELETE_FAILED, f"Could not delete {kind} {name}: {error}"
