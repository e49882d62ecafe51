"""Reconciles one key of the work queue: observe, plan, execute, publish the status, requeue.

    watch event ─► work queue ─► observe ─► plan ─► execute ─► publish ─► requeue
                                 (caches)   (pure)  (writes)   (status)   (at a time, or with back-off)

`Controller` connects the parts and holds the order of one pass. What a plan contains is decided in
`grove.plan`; which watch event enqueues which key, in `grove.operator.watches`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from grove import timing
from grove.api.intents import EventRecord
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.client.retry import Backoff
from grove.kube.executor.executor import Executor
from grove.kube.executor.keyed_executor import KeyedExecutor
from grove.kube.executor.outcome import Outcome
from grove.kube.workqueue.queue import WorkQueue
from grove.operator.caches.nodes import Nodes
from grove.operator.caches.registry import Caches
from grove.operator.engine.api_error_log import ApiErrorLog
from grove.operator.engine.errors import ChildRef, PassErrors, complete_status, unfinished, unfinished_writes
from grove.operator.engine.events import (
    DeletedPods,
    deleted_pods,
    events_of_outcome,
    events_of_plan,
    lost_scheduling_events,
)
from grove.operator.engine.no_effect import NoEffectDetector
from grove.operator.engine.placement import PlacementState
from grove.operator.engine.replica_reports import ReplicaReports
from grove.operator.engine.scheduler_error_events import SchedulerErrorEvents
from grove.operator.engine.slow_writes import SlowWrites
from grove.operator.engine.status_publisher import StatusPublisher, status_writes
from grove.operator.engine.terminating_namespaces import TerminatingNamespaces
from grove.operator.engine.undecodable import UndecodableObjects
from grove.operator.keys import (
    DomainKey,
    Key,
    PlacementKey,
    ReplicaKey,
    SetKey,
    TopologyKey,
    WorkloadKey,
    parent_of,
    tenant_of,
)
from grove.operator.observers.schedulers import SchedulerLookup
from grove.operator.observers.topology import TopologyLookup
from grove.operator.observers.topology_usage import TopologyUsageObserver
from grove.operator.observers.workload import Observer
from grove.operator.reconcilers.fabric import FabricReconciler
from grove.operator.reconcilers.plan_thread import PlanThreadBusy
from grove.operator.reconcilers.relabel import find_lost, relabel_existing
from grove.operator.reconcilers.scale_in import ScaleInTracker
from grove.operator.reconcilers.topology import TopologyReconciler
from grove.operator.reconcilers.workload_planner import Planner, PlannerInputs
from grove.operator.watches.delays import busy_delay
from grove.operator.watches.quotas import quota_watches
from grove.operator.watches.table import Watch, register
from grove.operator.watches.topologies import topology_watches
from grove.operator.watches.workloads import workload_watches
from grove.plan.model import Plan, StatusUpdate
from grove.plan.placement import Assigner, NoAssigner
from grove.schedulers.registry import SchedulerBackends

log = structlog.get_logger("grove.operator")

_NO_WRITES = Outcome(())


class Controller:
    """Reconciles every key that a watch event, a time or a failure puts into the work queue."""

    def __init__(
        self,
        caches: Caches,
        executor: Executor,
        emit: Callable[[EventRecord], None],
        *,
        assigner: Assigner | None = None,
        topology_aware: bool = False,
        backends: SchedulerBackends | None = None,
        workers: int = timing.WORKERS,
        backoff: Backoff | None = None,
        init_image: str = "",
        nodes: Nodes | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._caches, self._executor, self._emit, self._clock = caches, executor, emit, clock
        self._placement = PlacementState(assigner or NoAssigner())
        self._topologies = TopologyLookup(caches, enabled=topology_aware)
        schedulers = SchedulerLookup(caches, backends)
        self._publisher: StatusPublisher[Key] = StatusPublisher()
        self._slow = SlowWrites(clock, self._aggregate_later)
        self._writes: KeyedExecutor[Key] = KeyedExecutor(
            executor, lambda: self.queue, self._slow.record, self._publisher.defer
        )
        self._fabric_reconciler = FabricReconciler(caches, self._writes, emit, clock)
        self._observer = Observer(
            caches,
            self._placement,
            init_image,
            self._topologies,
            schedulers,
            self._fabric_reconciler.fabric_lookup,
        )
        executor.limiter.on_free_slots = self._requeue_waiting
        self._reports = ReplicaReports()
        self._scale_in = ScaleInTracker(self._observer)
        self._no_effect, self._api_errors = NoEffectDetector(), ApiErrorLog()
        self._terminating, self._scheduler_errors = (
            TerminatingNamespaces(caches.sets),
            SchedulerErrorEvents(caches),
        )
        self.queue: WorkQueue[Key] = WorkQueue(
            "workloads",
            self._reconcile,
            workers=workers,
            lane_of=self._reports.lane,
            tenant=tenant_of,
            backoff=backoff,
        )
        inputs = PlannerInputs(
            caches=caches,
            observer=self._observer,
            reports=self._reports,
            terminating_namespaces=self._terminating,
            scale_in=self._scale_in,
            topologies=self._topologies,
            domains=self._fabric_reconciler,
            errors=self._errors_of,
        )
        self._planner = Planner(inputs, self._aggregate_later)
        self._topology_reconciler = None
        of_topologies: tuple[Watch, ...] = ()
        if topology_aware:
            nodes = nodes or Nodes()
            usage = TopologyUsageObserver(caches, nodes)
            self._topology_reconciler = TopologyReconciler(caches, self._writes, backends, emit, usage)
            of_topologies = topology_watches(caches, nodes)
        watches = (
            *workload_watches(caches, busy_delay=lambda: busy_delay(self.queue.backlog)),
            *of_topologies,
            *quota_watches(caches.quotas, self._api_errors),
        )
        register(watches, self.queue.enqueue, self.queue.reset_backoff)
        self._fabric_reconciler.register_watches(self.queue.enqueue)
        self._undecodable = UndecodableObjects(
            reported_on_themselves=(caches.sets, caches.topologies, caches.topology_bindings),
            reported_on_sets=(*caches.replica_objects, *caches.rbac_objects, caches.claims),
            emit=emit,
            enqueue=self.queue.enqueue,
            clock=clock,
        )

    async def _reconcile(self, key: Key) -> None:
        """One pass over one key."""
        if not await self._writes.verify(key):
            return
        if isinstance(key, PlacementKey):
            self._assign_placements()
        elif isinstance(key, TopologyKey | DomainKey):
            await self._reconcile_topology_or_domain(key)
        else:
            await self._reconcile_workload(key)
            self._publisher.end_pass(key)
        self._writes.end_pass(key)

    async def _reconcile_workload(self, key: WorkloadKey) -> None:
        now = self._clock()
        if isinstance(key, ReplicaKey):
            lost = await find_lost(key, self._observer, self._writes)
            if lost is not None:
                self._api_errors.record(key, lost)
                self.queue.enqueue(key, None, failed=True)
                return
        try:
            plan = await self._plan(key, now)
        except PlanThreadBusy as busy:
            self.queue.enqueue(key, busy.at)
            return
        if plan is None:
            self._forget(key)
            return
        known = deleted_pods(self._caches, plan.intents)
        if plan.intents:
            self._planner.drop_cached_plan(key)
        outcome = await self._writes.execute(key, plan.intents) if plan.intents else _NO_WRITES
        if relabelled := relabel_existing(outcome):
            restored = await self._writes.execute(key, relabelled)
            if restored.failed:  # an error of this pass, which would otherwise never publish a status
                outcome = outcome.joined(restored)
        errors = self._terminating.errors(key, outcome, plan.errors, now)
        if (
            plan.awaiting_placement
            and isinstance(key, ReplicaKey)
            and self._placement.request(key, plan.awaiting_placement)
        ):
            self.queue.enqueue(PlacementKey())
        self._api_errors.record(key, _NO_WRITES if self._terminating.includes(key) else outcome)
        remaining = unfinished(outcome) | ({None} if plan.partial else frozenset())
        continue_now = self._planner.record_failures(key, plan, unfinished_writes(outcome))
        self._record_result(key, plan, errors, remaining)
        self._emit_events(key, plan, outcome, known)
        stuck = self._no_effect.repeated(key, plan.intents if outcome.done else ())
        retry = outcome.failed or outcome.outdated or stuck
        requeue_at = None if plan.requeue_at is None else self._loop_time() + plan.requeue_at - now
        if plan.intents and (outcome.done or outcome.outdated) and not outcome.failed:
            # The replies are in the cache: the next pass computes the status from them.
            soon = self._loop_time() + busy_delay(self.queue.backlog)
            self.queue.enqueue(key, requeue_at if retry else soon, failed=retry)
            return
        remaining |= {None} if self._terminating.includes(key) else frozenset()
        published, later = await self._publish(key, plan.status_updates, errors, remaining)
        if later is None:
            self._planner.drop_cached_plan(key)
        rest = self._loop_time() if continue_now else None
        times = [at for at in (requeue_at, later, rest) if at is not None]
        self.queue.enqueue(key, min(times, default=None), failed=retry or not published)

    async def _reconcile_topology_or_domain(self, key: TopologyKey | DomainKey) -> None:
        if isinstance(key, DomainKey):
            succeeded, due = await self._fabric_reconciler.reconcile(key)
            requeue_at = None if due is None else self._loop_time() + due - self._clock()
        else:
            assert self._topology_reconciler is not None
            succeeded, again = await self._topology_reconciler.reconcile(key, self._clock())
            requeue_at = self._loop_time() if again else None
        self.queue.enqueue(key, requeue_at if succeeded else None, failed=not succeeded)

    def _requeue_waiting(self, free_slots: int) -> None:
        for key in self._publisher.release(free_slots):
            self.queue.enqueue(key)

    def _assign_placements(self) -> None:
        for replica in self._placement.assign():
            self.queue.enqueue(replica)

    def _workload(self, key: WorkloadKey) -> PodCliqueSet | None:
        parent = parent_of(key)
        return self._caches.sets.get(parent.namespace, parent.name)

    async def _plan(self, key: WorkloadKey, now: float) -> Plan | None:
        try:
            return await self._planner.plan(key, now)
        except PlanThreadBusy:
            raise
        except Exception as error:  # concerns this workload only: its status reports it, the queue logs it
            if isinstance(key, ReplicaKey) and self._reports.record_plan_failure(key, error, now):
                self.queue.enqueue(parent_of(key))
            raise

    def _aggregate_later(self, key: SetKey) -> None:
        """Enqueue a set after a delay, so that the reports of several replicas are aggregated in one pass.
        The larger the set, the longer aggregation takes, and the longer is the delay."""
        pause = timing.AGGREGATION_DELAY + timing.AGGREGATION_DELAY_PER_REPLICA * len(self._reports.of(key))
        self.queue.enqueue(key, self._loop_time() + pause)

    def _errors_of(self, key: SetKey) -> tuple[LastError, ...]:
        """The errors in the status of a set that do not come from its replicas."""
        return (*self._reports.of_set(key), *self._slow.errors(key), *self._undecodable.errors(key))

    def _record_result(
        self, key: WorkloadKey, plan: Plan, errors: PassErrors, remaining: frozenset[ChildRef | None]
    ) -> None:
        """Store the result of a pass over a replica or a set, and enqueue the set if the result changed."""
        if isinstance(key, ReplicaKey):
            changed = self._reports.record(key, self._workload(key), plan, errors, remaining)
        else:
            changed = self._reports.record_set(key, errors)
        if changed:
            self._aggregate_later(parent_of(key))

    async def _publish(
        self,
        key: WorkloadKey,
        status_updates: Sequence[StatusUpdate],
        errors: PassErrors,
        remaining: frozenset[ChildRef | None],
    ) -> tuple[bool, float | None]:
        """Write the statuses that are due. Returns whether the writes succeeded, and when more are due."""
        updates = tuple(complete_status(status_update, errors, remaining) for status_update in status_updates)
        busy = not self._executor.limiter.free_slots
        due, later = self._publisher.due_updates(key, updates, self._loop_time(), busy=busy)
        if not due:
            return True, later
        due, rest = due[: timing.STATUSES_PER_PASS], due[timing.STATUSES_PER_PASS :]
        outcome = await self._writes.execute(key, status_writes(due))
        for error in outcome.errors:
            log.warning("status not published", key=str(key), action="retry", reason=str(error))
        if not self._terminating.includes(key):
            for lost in lost_scheduling_events(self._caches, due, outcome):
                self._emit(lost)
        return not (outcome.failed or outcome.outdated), self._loop_time() if rest else None

    def _emit_events(self, key: WorkloadKey, plan: Plan, outcome: Outcome, known: DeletedPods) -> None:
        for event in self._scheduler_errors.new_events(key, key.namespace, plan.errors):
            self._emit(event)
        workload = self._workload(key) if outcome.results else None
        if workload is not None and not self._terminating.includes(key):
            happened = events_of_outcome(self._caches, workload, outcome, known)
            for event in (*happened, *events_of_plan(plan, outcome)):
                self._emit(event)

    def _forget(self, key: WorkloadKey) -> None:
        of_workloads = (
            self._no_effect,
            self._api_errors,
            self._scheduler_errors,
            self._terminating,
            self._planner,
        )
        for memory in (self.queue, self._writes, self._publisher, *of_workloads):
            memory.forget(key)
        if isinstance(key, ReplicaKey):
            self._placement.forget(key)
        else:
            for remembered in (self._reports, self._slow, self._scale_in):
                remembered.forget(key)

    @staticmethod
    def _loop_time() -> float:
        return asyncio.get_running_loop().time()
