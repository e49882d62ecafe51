"""The loop, and only this: observe, plan, execute, publish, and know when to look again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence

import structlog
from msgspec.structs import replace

from grove.api.intents import Intent, Occurrence
from grove.kube.executor import Executor
from grove.kube.outcome import Outcome, State
from grove.kube.queue import Queue
from grove.operator.blame import Blame, blame
from grove.operator.caches import BY_SET, Caches
from grove.operator.keys import Key, ReplicaKey, SetKey
from grove.operator.observe import Observer
from grove.operator.publish import Publisher, intents
from grove.operator.strays import put_back
from grove.operator.telemetry import plan_seconds, plan_writes
from grove.operator.tell import occurrences, stories
from grove.operator.wakes import wire
from grove.plan.model import Draft, Plan
from grove.plan.replica import plan_replica
from grove.plan.whole import Report, plan_end, plan_set
from grove.plan.writes import joined

log = structlog.get_logger("grove.operator")

_NOTHING = Outcome(())
_GATHERING = 0.2


class Controller:
    """Brings every key in order, whenever something about it changes."""

    def __init__(
        self,
        caches: Caches,
        executor: Executor,
        tell: Callable[[Occurrence], None],
        *,
        workers: int = 64,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._caches, self._executor, self._tell, self._clock = caches, executor, tell, clock
        self._observer = Observer(caches)
        self._publisher = Publisher()
        self._reports: dict[SetKey, dict[int, Report]] = {}
        self._surplus: dict[SetKey, set[int]] = {}
        self._repeats: dict[Key, tuple[str, ...]] = {}
        self.queue: Queue[Key] = Queue("workloads", self._work, workers=workers)
        wire(caches, self.queue.wake)

    async def _work(self, key: Key) -> None:
        """One pass over one key."""
        now = self._clock()
        plan = self._timed_plan(key, now)
        if plan is None:
            self._forget(key)
            return
        outcome = await self._executor.execute(plan.intents) if plan.intents else _NOTHING
        if strays := put_back(outcome):
            await self._executor.execute(strays)
        errors = blame(outcome, now)
        self._report(key, plan, errors)
        self._tell_news(key, plan, outcome)
        done = all(result.state is State.DONE for result in outcome.results)
        retry = outcome.failed or outcome.outdated or self._stuck(key, plan.intents if done else ())
        wake_at = None if plan.wake_at is None else self._loop_time() + plan.wake_at - now
        if plan.intents and (done or outcome.outdated):
            # What was written is in the cache: the status of what is true now comes with the next pass.
            self.queue.wake(key, wake_at if retry else self._loop_time(), failed=retry)
            return
        told, later = await self._publish(key, plan.drafts, errors, complete=not plan.intents)
        moments = [moment for moment in (wake_at, later) if moment is not None]
        self.queue.wake(key, min(moments, default=None), failed=retry or not told)

    def _timed_plan(self, key: Key, now: float) -> Plan | None:
        began = time.perf_counter()
        plan = self._plan(key, now)
        if plan is not None:
            plan_seconds.observe(time.perf_counter() - began)
            plan_writes.observe(len(plan.intents))
        return plan

    def _plan(self, key: Key, now: float) -> Plan | None:
        if isinstance(key, ReplicaKey):
            return self._plan_replica(key, now)
        workload = self._caches.sets.get(key.namespace, key.name)
        if workload is None:
            return None
        if workload.metadata.deletion_timestamp is not None:
            pods, cliques = self._caches.pods, self._caches.cliques
            return plan_end(workload, tuple(pods.by_index(BY_SET, key)), tuple(cliques.by_index(BY_SET, key)))
        plan = plan_set(workload, self._reports.get(key, {}), now)
        return replace(plan, intents=joined((plan.intents, *self._retirements(key, now))))

    def _plan_replica(self, key: ReplicaKey, now: float) -> Plan | None:
        snapshot = self._observer.replica(key)
        if snapshot is None:
            return None
        if (
            key.replica >= snapshot.workload.spec.replicas
            and not snapshot.workload.metadata.deletion_timestamp
        ):
            parent = SetKey(key.namespace, key.set_name)
            self._surplus.setdefault(parent, set()).add(key.replica)
            self.queue.wake(parent)
            return Plan()
        return plan_replica(snapshot, now)

    def _retirements(self, key: SetKey, now: float) -> Iterator[tuple[Intent, ...]]:
        """Replicas that are too many go together: the count that says so is confirmed once for all."""
        surplus = self._surplus.get(key, set())
        for replica in sorted(surplus):
            snapshot = self._observer.replica(ReplicaKey(key.namespace, key.name, replica))
            plan = (
                plan_replica(snapshot, now)
                if snapshot and replica >= snapshot.workload.spec.replicas
                else Plan()
            )
            if not plan.intents:
                surplus.discard(replica)
            yield plan.intents

    def _report(self, key: Key, plan: Plan, errors: Blame) -> None:
        """Tell the set how a replica stands, if that is news."""
        if not isinstance(key, ReplicaKey):
            return
        parent = SetKey(key.namespace, key.set_name)
        reports = self._reports.setdefault(parent, {})
        workload = self._caches.sets.get(key.namespace, key.set_name)
        if plan.standing is None or workload is None:
            if reports.pop(key.replica, None) is not None:
                self.queue.wake(parent)
            return
        report = Report(workload.metadata.generation, plan.standing, errors.of_set)
        if reports.get(key.replica) != report:
            reports[key.replica] = report
            # A set has many replicas: what several of them report within a moment is added up once.
            self.queue.wake(parent, self._loop_time() + _GATHERING)

    async def _publish(
        self, key: Key, drafts: Sequence[Draft], errors: Blame, *, complete: bool
    ) -> tuple[bool, float | None]:
        """Publish what is due. Returns whether that went well, and when more will be due."""
        finished = tuple(_finish(draft, errors, complete) for draft in drafts)
        limiter = self._executor.limiter
        busy = limiter.in_flight >= limiter.limit
        due, later = self._publisher.consider(key, finished, self._loop_time(), busy=busy)
        if not due:
            return True, later
        outcome = await self._executor.execute(intents(due))
        for error in outcome.errors:
            log.warning("status not published", key=str(key), action="retry", reason=str(error))
        return not (outcome.failed or outcome.outdated), None

    def _tell_news(self, key: Key, plan: Plan, outcome: Outcome) -> None:
        name = key.set_name if isinstance(key, ReplicaKey) else key.name
        workload = self._caches.sets.get(key.namespace, name)
        if workload is not None:
            for news in (*occurrences(self._caches, workload, outcome), *stories(workload, plan, outcome)):
                self._tell(news)

    def _stuck(self, key: Key, done: Sequence[Intent]) -> bool:
        """The same plan again although all of it was done: something undoes it, or it has no effect."""
        ids = tuple(intent.id for intent in done)
        again = bool(ids) and self._repeats.get(key) == ids
        if ids:
            self._repeats[key] = ids
        else:
            self._repeats.pop(key, None)
        if again:
            log.warning("plan has no effect", key=str(key), action="back off", reason=", ".join(ids[:3]))
        return again

    def _forget(self, key: Key) -> None:
        self.queue.forget(key)
        self._publisher.forget(key)
        self._repeats.pop(key, None)
        if isinstance(key, SetKey):
            self._reports.pop(key, None)
            self._surplus.pop(key, None)

    @staticmethod
    def _loop_time() -> float:
        return asyncio.get_running_loop().time()


def _finish(draft: Draft, errors: Blame, complete: bool) -> Draft:
    """What only the outcome can tell: the generation that was acted on, and what went wrong."""
    if not hasattr(draft.desired, "last_errors") or draft.observed == 0:
        return draft
    found = errors.settle(draft.target, draft.current.last_errors)
    observed = draft.observed if complete else draft.current.observed_generation
    return replace(draft, desired=replace(draft.desired, last_errors=found, observed_generation=observed))
