"""Executes a plan: sends its intents, each after those it depends on, and returns the result of each.

Independent intents are sent at the same time, within a limit that all plans share. Every reply goes into the
cache before anything that depends on it is sent, so that the next plan sees the writes of this one. If it is
uncertain whether a write took effect, the object is read before the outcome is returned; if that fails too,
the outcome lists it in `unknown_writes`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Protocol

from grove import timing
from grove.api.intents import Intent
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
from grove.kube.executor.write_latency import WriteClass
from grove.kube.executor.write_limiter import WriteLimiter, WritePriority
from grove.kube.executor.writer import ResourceMapper, Writer, WriteReply
from grove.kube.leader.leadership import LeadershipLost
from grove.logger import get_logger

log = get_logger("grove.kube.executor.executor")


class Progress(Protocol):
    """Callbacks of a plan that is being executed."""

    def on_wait(self) -> None:
        """A write of the plan waits for a slow server."""
        ...

    def on_slow(self, write_class: WriteClass) -> None:
        """Writes of this class take so long that it is reported to users."""
        ...


class Executor:
    """Executes any number of plans at the same time. Writes go through `transport`, which may fence them."""

    def __init__(
        self,
        transport: Transport,
        resources: Iterable[Resource],
        *,
        store: ObjectStore | None = None,
        limiter: WriteLimiter | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        mapper, store = ResourceMapper(resources), store or CacheStore()
        self.limiter = limiter or WriteLimiter()
        self.backoff = backoff or Backoff()
        self.rng = random.Random()  # noqa: S311 - jitter, not secrets
        # The client does not retry: the executor does, without occupying a slot during the pause.
        self.writer = Writer(Client(transport, retry=NO_RETRY), mapper, store)
        self.unknown_writes = UnknownWriteResolver(
            Client(transport, retry=NO_RETRY), mapper, store, self.backoff
        )

    async def execute(self, intents: Sequence[Intent], progress: Progress | None = None) -> Outcome:
        """Execute a plan. Failures of writes are results; only an invalid plan raises."""
        run = _PlanRun(self, intents, progress)
        await run.complete()
        return run.outcome()


class _PlanRun:
    """The execution of one plan. A worker sends one step after another; more are started while several steps
    are ready."""

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
        """Work until no step is left; a plan without parallel steps needs no extra task."""
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
        """As many workers as there are ready steps, but never more than may send at once."""
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
            return await self._resolve(step.intent, error)
        except Exception as bug:  # in this intent alone: the others go on
            log.exception("intent cannot be sent", key=step.id, action="skip it", reason=str(bug))
            return Result(step.intent, IntentState.FAILED, error=bug)
        return Result(step.intent, IntentState.DONE, reply.name, reply.uid)

    async def _resolve(self, intent: Intent, error: KubeError) -> Result:
        if isinstance(error, NoAnswer) and self._progress is not None:
            self._progress.on_wait()  # reading the object may take as long
        result = await self._executor.unknown_writes.resolve_failed_write(intent, self._deferred, error)
        if isinstance(result.error, UnknownOutcome):
            self._unknown_writes.append(UnknownWrite(intent, self._deferred, error, str(result.error)))
        return result

    async def _send(self, step: IntentStep) -> WriteReply:
        """Send within the limit. A write that certainly took no effect is retried, after a pause without a
        slot."""
        write_class = self._executor.writer.write_class(step.intent)
        for attempt in range(timing.WRITE_ATTEMPTS):
            slot = WriteSlot(self._executor, write_class, self._progress)
            await slot.acquire(step.priority)
            try:
                return await slot.send(step.intent, self._deferred)
            except (ConnectError, TooManyRequests) as rejection:
                if attempt + 1 == timing.WRITE_ATTEMPTS:
                    raise
                pause = self._executor.backoff.pause(attempt, self._executor.rng)
                if isinstance(rejection, TooManyRequests):
                    pause += min(rejection.retry_after or 0.0, timing.WRITE_LONGEST_PAUSE)
            finally:
                slot.release()
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")


class WriteSlot:
    """The slot of one write in the limiter, and the records of how long the write takes."""

    def __init__(self, executor: Executor, write_class: WriteClass, progress: Progress | None) -> None:
        self._executor, self._write_class, self._progress = executor, write_class, progress
        self._limiter, self._latencies = executor.limiter, executor.limiter.latencies
        self._slow = False
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, priority: WritePriority) -> None:
        """Wait for a slot; for one for slow writes if this write is expected to be slow."""
        self._slow = await self._limiter.acquire(priority, self._write_class, self._on_wait)

    def release(self) -> None:
        """Give the slot back."""
        self._limiter.release(self._write_class, slow=self._slow)

    async def send(self, intent: Intent, deferred: DeferredValues) -> WriteReply:
        """Send once, and record the latency or the rejection."""
        loop = asyncio.get_running_loop()
        began, timeout = loop.time(), self._latencies.timeout(self._write_class)
        self._timer = loop.call_later(timing.SLOW_WRITE, self._on_late)
        try:
            reply = await self._executor.writer.send(intent, deferred, timeout)
        except NoAnswer as lost:
            self._latencies.record_timeout(self._write_class, lost.seconds)
            raise
        except (TooManyRequests, LostReply):
            self._limiter.record_rejection()
            raise
        finally:
            self._timer.cancel()
        took = loop.time() - began
        self._latencies.record_reply(self._write_class, took)
        self._limiter.record_reply(took, self._latencies.floor(self._write_class))
        return reply

    def _on_late(self) -> None:
        """The write has been in flight for `timing.SLOW_WRITE` seconds: free its slot for other writes."""
        self._latencies.record_late(self._write_class)
        self._slow = self._slow or self._limiter.move_to_slow(self._write_class)
        self._on_wait()
        self._timer = asyncio.get_running_loop().call_later(
            timing.REPORTED_WRITE - timing.SLOW_WRITE, self._report
        )

    def _report(self) -> None:
        self._latencies.report(self._write_class, timing.REPORTED_WRITE)
        if self._progress is not None:
            self._progress.on_slow(self._write_class)

    def _on_wait(self) -> None:
        if self._progress is not None:
            self._progress.on_wait()
