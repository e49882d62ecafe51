"""Runs the passes over all kinds of keys: observe, plan, execute, publish the status, requeue.

    watch event ─► work queue ─► observe ─► plan ─► execute ─► publish ─► requeue
                                 (caches)   (pure)  (writes)   (status)   (at a time, or with back-off)

The engine has the order of a pass and everything that is the same for all kinds: events, errors, statuses,
large plans, retries. What is observed and planned is up to the `Reconciler` of the key's kind.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from grove import timing
from grove.api.intents import EventRecord, ObjectRef
from grove.kube.client.retry import Backoff
from grove.kube.executor.executor import Executor
from grove.kube.executor.keyed_executor import KeyedExecutor
from grove.kube.executor.outcome import Outcome
from grove.kube.workqueue.queue import WorkQueue
from grove.logger import get_logger
from grove.operator.engine.api_error_log import ApiErrorLog
from grove.operator.engine.errors import collect_errors, unfinished
from grove.operator.engine.events import event_record, events_of_statuses, events_of_writes, lasting_events
from grove.operator.engine.key_state import KeyState, KeyStates
from grove.operator.engine.no_effect import has_no_effect
from grove.operator.engine.plan_thread import PlanThread, PlanThreadBusy
from grove.operator.engine.reconciler import PassResult, Reconciler
from grove.operator.engine.relabel import relabel_existing
from grove.operator.engine.status_publisher import PendingStatuses, StatusPublisher, status_writes
from grove.operator.engine.terminating_namespaces import (
    is_in_terminating_namespace,
    record_terminating_namespace,
)
from grove.operator.engine.write_budget import limit_writes, record_failures
from grove.operator.keys import Key, tenant_of
from grove.operator.metrics.workloads import plan_seconds, plan_writes
from grove.plan.model import Plan, StatusUpdate

log = get_logger("grove.operator")

_NO_WRITES = Outcome(())
AnyReconciler = Reconciler[Any, Any]


class Engine:
    """Reconciles every key that a watch event, a time or a failure puts into the work queue."""

    def __init__(
        self,
        executor: Executor,
        emit: Callable[[EventRecord], None],
        *,
        workers: int = 64,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.executor, self._emit, self.clock = executor, emit, clock
        self.states, self.api_errors = KeyStates(), ApiErrorLog()
        self.reconcilers: dict[type, AnyReconciler] = {}
        self._executors: dict[type, KeyedExecutor[Key]] = {}
        self._publisher: StatusPublisher[Key] = StatusPublisher()
        self._plan_thread = PlanThread()
        self.queue: WorkQueue[Key] = WorkQueue(
            "operator",
            self.reconcile,
            workers=workers,
            lane_of=lambda key: self.reconcilers[type(key)].lane(key),
            tenant=tenant_of,
            backoff=backoff,
        )
        executor.limiter.on_free_slots = self._requeue_waiting

    def add(self, kind: type, reconciler: AnyReconciler, executor: Executor | None = None) -> None:
        """Reconcile the keys of a kind with this reconciler; its writes go through `executor`."""
        self.reconcilers[kind] = reconciler
        self._executors[kind] = KeyedExecutor(
            executor or self.executor,
            self.queue,
            self.states.of,
            reconciler.record_write_problems,
            lambda key: self._publisher.defer(key, self.states.of(key).statuses),
        )

    def start_delay(self, key: Key) -> float:
        """The current delay for a key that is starting. If only its statuses are left to write, and other
        writes take the slots, it is enqueued when there is one: a pass before would write nothing."""
        state = self.states.find(key)
        if state is not None and state.only_statuses_left:
            busy = not self.executor.limiter.free_slots
            self._publisher.record_change(key, self._loop_time(), busy=busy)
            if busy:
                return timing.STATUS_MAX_DELAY
        return busy_delay(self.queue.backlog)

    async def reconcile(self, key: Key) -> None:
        """One pass over one key."""
        if not await self._executors[type(key)].verify(key):
            return
        state = self.states.of(key)
        await self._pass(key, state, self.reconcilers[type(key)])
        self._publisher.end_pass(key)
        if free_slots := self.executor.limiter.free_slots:
            self._requeue_waiting(free_slots)
        if self.states.find(key) is state:
            self._executors[type(key)].end_pass(key)
        else:  # dropped meanwhile, together with its set
            self._publisher.forget(key, state.statuses)

    async def _pass(self, key: Key, state: KeyState, reconciler: AnyReconciler) -> None:
        now = self.clock()
        try:
            snapshot, plan = await self._plan(key, state, reconciler, now)
        except PlanThreadBusy as busy:
            self.queue.enqueue(key, busy.at)
            return
        if plan is None:
            self._drop(key, state)
            return
        about = reconciler.about(snapshot)
        outcome = await self._execute(key, plan)
        result = self._result(key, state, about, plan, outcome, now, reconciler.error_code)
        self._emit_events(state, about, plan, result)
        reconciler.record(key, snapshot, plan, result)
        no_effect = has_no_effect(key, state, plan.intents if outcome.done else ())
        times = [self._loop_time(plan.requeue_at - now)] if plan.requeue_at is not None else []
        if plan.intents and (outcome.done or outcome.outdated) and not outcome.failed and not no_effect:
            # The replies are in the cache: the next pass computes the status from them.
            succeeded = outcome.done
            times += [self._loop_time(self.start_delay(key))] if succeeded else []
        elif plan.awaits_round:
            succeeded, state.cached_plan = True, None
        else:
            plan = reconciler.with_errors(snapshot, plan, result, now)
            published, due = await self._publish(key, state, plan.status_updates, result)
            succeeded = published and not no_effect and (not outcome.failed or outcome.namespace_terminating)
            times += due
        if record_failures(state, plan.intents, outcome):
            times.append(self._loop_time())
        self.queue.enqueue(key, min(times, default=None), failed=not succeeded)

    # Planning.

    async def _plan(
        self, key: Key, state: KeyState, reconciler: AnyReconciler, now: float
    ) -> tuple[Any, Plan | None]:
        """The snapshot and the plan of a key; None if the key does not exist. Raises PlanThreadBusy."""
        large = reconciler.is_large(key)
        with self._plan_thread.reserved() if large else nullcontext():
            began = time.perf_counter()
            try:
                snapshot = await reconciler.observe(key)
                if snapshot is None:
                    return None, None
                plan = _still_valid(state, snapshot, now)
                if plan is None:
                    compute = partial(reconciler.plan, snapshot, now)
                    plan = await self._plan_thread.run(compute) if large else compute()
            except Exception as error:  # concerns this key only: the queue logs it
                if (failure := reconciler.plan_failure(key, error, now)) is error:
                    raise
                raise failure from None
        plan_seconds.observe(time.perf_counter() - began)
        plan_writes.observe(len(plan.intents))
        state.cached_plan = None if plan.intents else (snapshot, plan)
        plan = limit_writes(state, plan)
        state.only_statuses_left = plan.only_statuses_left
        return snapshot, plan

    # Writes, and what became of them.

    async def _execute(self, key: Key, plan: Plan) -> Outcome:
        if not plan.intents:
            return _NO_WRITES
        outcome = await self._executors[type(key)].execute(key, plan.intents)
        if relabelled := relabel_existing(outcome):
            restored = await self._executors[type(key)].execute(key, relabelled)
            if restored.failed:  # an error of this pass, which would otherwise never publish a status
                outcome = outcome.joined(restored)
        return outcome

    def _result(
        self,
        key: Key,
        state: KeyState,
        about: ObjectRef | None,
        plan: Plan,
        outcome: Outcome,
        now: float,
        code: str,
    ) -> PassResult:
        """Log errors and store them in the record of the key. In a terminating namespace the errors are those
        of the latest attempt."""
        uid = about.uid if about is not None else ""
        if outcome.namespace_terminating:
            record_terminating_namespace(self.states, key, uid)
        terminating = outcome.namespace_terminating or is_in_terminating_namespace(self.states, key, uid)
        before = state.errors, state.report
        state.report = plan.report
        if outcome.namespace_terminating or not terminating:
            state.errors = collect_errors(outcome, now, plan.errors, code)
        self.api_errors.record(key, state, _NO_WRITES if terminating else outcome, code)
        remaining = unfinished(outcome) | ({None} if plan.partial or terminating else frozenset())
        changed = state.errors.differ_from(before[0].of_set) or state.report != before[1]
        return PassResult(outcome, state.errors, changed, remaining, terminating)

    def _emit_events(self, state: KeyState, about: ObjectRef | None, plan: Plan, result: PassResult) -> None:
        lasting, before = lasting_events(plan), state.lasting_events
        if lasting or before:
            state.lasting_events = frozenset(lasting)
        for identity, planned in lasting.items():
            if identity not in before:
                self._emit(event_record(planned))
        if result.outcome.results and not result.namespace_terminating:
            for event in events_of_writes(plan, result.outcome, about):
                self._emit(event)

    # Statuses.

    async def _publish(
        self, key: Key, state: KeyState, updates: Sequence[StatusUpdate], result: PassResult
    ) -> tuple[bool, list[float]]:
        """Write the statuses that are due. Returns whether the writes succeeded, and when more are due."""
        busy = not self.executor.limiter.free_slots
        pending = state.statuses or PendingStatuses()
        due, later = self._publisher.due_updates(key, pending, updates, self._loop_time(), busy=busy)
        state.statuses = pending if later is not None or pending.message is not None else None
        times = [later] if later is not None else []
        if not due:
            state.cached_plan = state.cached_plan if times else None
            return True, times
        state.cached_plan = None
        due, rest = due[: timing.STATUSES_PER_PASS], due[timing.STATUSES_PER_PASS :]
        outcome = await self._executors[type(key)].execute(key, status_writes(due))
        for error in outcome.errors:
            log.warning("status not published", key=str(key), action="retry", reason=str(error))
        if not result.namespace_terminating:
            for event in events_of_statuses(due, outcome):
                self._emit(event)
        return not (outcome.failed or outcome.outdated), [self._loop_time()] if rest else times

    def _requeue_waiting(self, free_slots: int) -> None:
        for key in self._publisher.release(free_slots):
            self.queue.enqueue(key)

    def _drop(self, key: Key, state: KeyState) -> None:
        """The key does not exist any more: drop everything that is remembered about it."""
        for each in self.states.replicas_of(key):
            self._drop(each, self.states.of(each))
        self.reconcilers[type(key)].dropped(key)
        self.queue.forget(key)
        self.api_errors.forget(key)
        self._executors[type(key)].forget(key)
        self._publisher.forget(key, state.statuses)
        self.states.drop(key)

    @staticmethod
    def _loop_time(seconds: float = 0.0) -> float:
        return asyncio.get_running_loop().time() + seconds


def _still_valid(state: KeyState, snapshot: object, now: float) -> Plan | None:
    """The cached plan of a key, if it is the one that would be computed for the snapshot."""
    known, plan = state.cached_plan or (None, None)
    if plan is None or known != snapshot or (plan.requeue_at is not None and plan.requeue_at <= now):
        return None
    return plan


def busy_delay(waiting: int) -> float:
    """The delay for a replica that is starting while this many keys wait in the queue: meanwhile more of its
    pods get their nodes and become ready, and one pass handles all of that."""
    return min(waiting * timing.BUSY_DELAY_PER_KEY, timing.MAX_BUSY_DELAY)
