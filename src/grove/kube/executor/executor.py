"""Carries out a plan: sends its intents, each after those it depends on, and tells what became of each.

Independent intents are under way at the same time, within a limit that all plans share. Every reply goes into
the cache before anything that depends on it is sent, so that the next plan sees its own writes. What is not
certain is looked up before the outcome is given; what could not be found out is in the outcome as a doubt.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Protocol

import structlog

from grove.api.intents import DeleteCollection, Intent
from grove.kube import metrics
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource
from grove.kube.client.retry import NO_RETRY, Backoff
from grove.kube.client.transport import Transport
from grove.kube.errors import (
    ConnectError,
    KubeError,
    LostReply,
    NoAnswer,
    TooManyRequests,
    UnknownOutcome,
)
from grove.kube.executor.cache_store import CacheStore, ObjectStore
from grove.kube.executor.deferred_values import DeferredValues
from grove.kube.executor.dependency_graph import DependencyGraph, IntentStep
from grove.kube.executor.outcome import IntentState, Outcome, Result, UnknownWrite
from grove.kube.executor.unknown_writes import UnknownWriteResolver
from grove.kube.executor.write_latency import REPORTED, SLOW, WriteClass
from grove.kube.executor.write_limiter import WriteLimiter, WritePriority
from grove.kube.executor.writer import ResourceMapper, Writer, WriteReply
from grove.kube.leader.leadership import LeadershipLost

log = structlog.get_logger("grove.kube.executor.executor")

_TRIES = 5  # of a write that the server certainly did not do
_LONGEST_PAUSE = 30.0  # whatever the server asks for: later the plan is old


class Progress(Protocol):
    """Is called while a plan is carried out."""

    def waits(self) -> None:
        """A write of the plan waits for the server longer than it should."""
        ...

    def is_slow(self, sort: WriteClass) -> None:
        """Writes of this sort take so long that users should know."""
        ...


class Executor:
    """Sends the intents of any number of plans. Writes go through `transport`, which may fence them."""

    def __init__(
        self,
        transport: Transport,
        resources: Iterable[Resource],
        *,
        store: ObjectStore | None = None,
        limiter: WriteLimiter | None = None,
        backoff: Backoff | None = None,
        field_manager: str = "grove",
    ) -> None:
        mapper, store = ResourceMapper(resources), store or CacheStore()
        self.limiter = limiter or WriteLimiter()
        self.backoff = backoff or Backoff()
        self.rng = random.Random()  # noqa: S311 - jitter, not secrets
        # Repeating a refused write is done here, outside of the slot that it held.
        self.writer = Writer(Client(transport, retry=NO_RETRY), mapper, store, field_manager)
        self.unknown_writes = UnknownWriteResolver(
            Client(transport, retry=NO_RETRY), mapper, store, self.backoff
        )

    async def execute(self, intents: Sequence[Intent], progress: Progress | None = None) -> Outcome:
        """Carry out a plan. Failures of writes are results; only a plan that makes no sense raises."""
        run = _PlanRun(self, intents, progress)
        await run.complete()
        return run.outcome()


class _PlanRun:
    """One plan under way. A walker sends one step after another; where ways part, more walkers set out."""

    def __init__(self, executor: Executor, intents: Sequence[Intent], progress: Progress | None) -> None:
        self._executor = executor
        self._progress = progress
        self._unknown_writes: list[UnknownWrite] = []
        self._graph = DependencyGraph(intents)
        self._deferred = DeferredValues()
        self._results: list[Result | None] = [None] * len(intents)
        self._workers = 1
        self._starting = 0

    async def complete(self) -> None:
        """Walk until no step is left; a plan without forks needs no task of its own."""
        async with asyncio.TaskGroup() as group:
            await self._work(group)

    def outcome(self) -> Outcome:
        """The results in the order of the intents."""
        results = tuple(result for result in self._results if result is not None)
        return Outcome(results, tuple(self._unknown_writes))

    async def _work(self, group: asyncio.TaskGroup) -> None:
        while (step := self._graph.pop_ready()) is not None:
            self._start_workers(group)
            self._record_result(step, await self._execute(step))
        self._workers -= 1

    def _start_workers(self, group: asyncio.TaskGroup) -> None:
        """As many walkers as there are steps to take, but never more than could be sending at once."""
        unassigned = len(self._graph) - self._starting
        for _ in range(min(unassigned, self._executor.limiter.limit - self._workers)):
            self._workers += 1
            self._starting += 1
            group.create_task(self._start_worker(group))

    async def _start_worker(self, group: asyncio.TaskGroup) -> None:
        self._starting -= 1
        await self._work(group)

    def _record_result(self, step: IntentStep, result: Result) -> None:
        self._results[step.index] = result
        metrics.count_intent(type(step.intent).__name__, result.state)
        if result.state is IntentState.DONE:
            self._deferred.uids[step.id] = result.uid
            self._graph.mark_done(step)
            return
        for dependent in self._graph.skip_dependents(step):
            self._results[dependent.index] = Result(dependent.intent, IntentState.SKIPPED)
            metrics.count_intent(type(dependent.intent).__name__, IntentState.SKIPPED)

    async def _execute(self, step: IntentStep) -> Result:
        try:
            reply = await self._send(step)
        except LeadershipLost as lost:
            return Result(step.intent, IntentState.SKIPPED, error=lost)
        except KubeError as error:
            return await self._explain(step.intent, error)
        except Exception as mistake:  # in this intent alone: the others are not to blame
            log.exception("intent cannot be sent", key=step.id)
            return Result(step.intent, IntentState.FAILED, error=mistake)
        return Result(step.intent, IntentState.DONE, reply.name, reply.uid)

    async def _explain(self, intent: Intent, error: KubeError) -> Result:
        if isinstance(error, NoAnswer) and self._progress is not None:
            self._progress.waits()  # reading it may take as long
        result = await self._executor.unknown_writes.resolve_failed_write(intent, self._deferred, error)
        if isinstance(result.error, UnknownOutcome):
            self._unknown_writes.append(UnknownWrite(intent, self._deferred, error, str(result.error)))
        return result

    async def _send(self, step: IntentStep) -> WriteReply:
        """Send within the limit. What was certainly not done is sent again, after waiting without a slot."""
        sort = self._executor.writer.sort(step.intent)
        for attempt in range(_TRIES):
            slot = Slot(self._executor, sort, self._progress)
            await slot.acquire(step.priority)
            try:
                return await slot.send(step.intent, self._deferred)
            except (ConnectError, TooManyRequests) as refusal:
                if attempt + 1 == _TRIES:
                    raise
                pause = self._executor.backoff.pause(attempt, self._executor.rng)
                if isinstance(refusal, TooManyRequests):
                    pause += min(refusal.retry_after or 0.0, _LONGEST_PAUSE)
            finally:
                slot.release()
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")


class Slot:
    """The right of one write to be in flight, and what is learned from how long it is."""

    def __init__(self, executor: Executor, sort: WriteClass, progress: Progress | None) -> None:
        self._executor, self._sort, self._progress = executor, sort, progress
        self._limiter, self._latencies = executor.limiter, executor.limiter.latencies
        self._aside = False
        self._alarm: asyncio.TimerHandle | None = None

    async def acquire(self, priority: WritePriority) -> None:
        """Wait for a slot: one for slow writes if this is expected to be one."""
        self._aside = await self._limiter.acquire(priority, self._sort, self._waits)

    def release(self) -> None:
        """Give the slot back, whichever it is now."""
        self._limiter.release(self._sort, aside=self._aside)

    async def send(self, intent: Intent, deferred: DeferredValues) -> WriteReply:
        """Send once, and learn how the server took it."""
        loop = asyncio.get_running_loop()
        began, timeout = loop.time(), self._latencies.timeout(self._sort)
        # Deleting a collection takes as long as the collection is large: that says nothing about load.
        measured = not isinstance(intent, DeleteCollection)
        if measured:
            self._alarm = loop.call_later(SLOW, self._is_late)
        try:
            reply = await self._executor.writer.send(intent, deferred, timeout)
        except NoAnswer as lost:
            if measured:
                self._latencies.ran_out(self._sort, lost.seconds)
            raise
        except (TooManyRequests, LostReply):
            self._limiter.record_rejection()
            raise
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
        if measured:
            took = loop.time() - began
            self._latencies.answered(self._sort, took)
            self._limiter.record_reply(took, self._latencies.floor(self._sort))
        return reply

    def _is_late(self) -> None:
        """It has been in flight for `SLOW` seconds: let others have the slot."""
        self._latencies.late(self._sort)
        self._aside = self._aside or self._limiter.set_aside(self._sort)
        self._waits()
        self._alarm = asyncio.get_running_loop().call_later(REPORTED - SLOW, self._is_reported)

    def _is_reported(self) -> None:
        self._latencies.report(self._sort, REPORTED)
        if self._progress is not None:
            self._progress.is_slow(self._sort)

    def _waits(self) -> None:
        if self._progress is not None:
            self._progress.waits()
