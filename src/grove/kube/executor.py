"""Carries out a plan: sends its intents, each after those it depends on, and tells what became of each.

Independent intents are under way at the same time, within a limit that all plans share. Every reply goes into
the cache before anything that depends on it is sent, so that the next plan sees its own writes. What is not
certain is looked up before the outcome is given: whoever plans next never builds on a guess.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence

import structlog

from grove.api.intents import DeleteCollection, Intent
from grove.kube import metrics
from grove.kube.agenda import Agenda, Step
from grove.kube.binding import Binding
from grove.kube.client import Client
from grove.kube.errors import ConnectError, KubeError, LostReply, TooManyRequests
from grove.kube.inquiry import Inquiry
from grove.kube.leadership import LeadershipLost
from grove.kube.limiter import Limiter
from grove.kube.outcome import Outcome, Result, State
from grove.kube.resource import Resource
from grove.kube.retry import NEVER, Backoff
from grove.kube.store import CacheStore, Store
from grove.kube.transport import Transport
from grove.kube.writer import Catalogue, Reply, Writer

log = structlog.get_logger("grove.kube.executor")

_TRIES = 5  # of a write that the server certainly did not do
_LONGEST_PAUSE = 30.0  # whatever the server asks for: later the plan is old


class Executor:
    """Sends the intents of any number of plans. Writes go through `transport`, which may fence them."""

    def __init__(
        self,
        transport: Transport,
        resources: Iterable[Resource],
        *,
        store: Store | None = None,
        limiter: Limiter | None = None,
        backoff: Backoff | None = None,
        field_manager: str = "grove",
    ) -> None:
        catalogue, store = Catalogue(resources), store or CacheStore()
        self.limiter = limiter or Limiter()
        self.backoff = backoff or Backoff()
        self.rng = random.Random()  # noqa: S311 - jitter, not secrets
        # Repeating a refused write is done here, outside of the slot that it held.
        self.writer = Writer(Client(transport, retry=NEVER), catalogue, store, field_manager)
        self.inquiry = Inquiry(Client(transport), catalogue, store, self.backoff)

    async def execute(self, intents: Sequence[Intent]) -> Outcome:
        """Carry out a plan. Failures of writes are results; only a plan that makes no sense raises."""
        run = _Run(self, intents)
        await run.complete()
        return run.outcome()


class _Run:
    """One plan under way. A walker sends one step after another; where ways part, more walkers set out."""

    def __init__(self, executor: Executor, intents: Sequence[Intent]) -> None:
        self._executor = executor
        self._agenda = Agenda(intents)
        self._binding = Binding()
        self._results: list[Result | None] = [None] * len(intents)
        self._walkers = 1
        self._setting_out = 0

    async def complete(self) -> None:
        """Walk until no step is left; a plan without forks needs no task of its own."""
        async with asyncio.TaskGroup() as group:
            await self._walk(group)

    def outcome(self) -> Outcome:
        """The results in the order of the intents."""
        return Outcome(tuple(result for result in self._results if result is not None))

    async def _walk(self, group: asyncio.TaskGroup) -> None:
        while (step := self._agenda.take()) is not None:
            self._recruit(group)
            self._note(step, await self._carry_out(step))
        self._walkers -= 1

    def _recruit(self, group: asyncio.TaskGroup) -> None:
        """As many walkers as there are steps to take, but never more than could be sending at once."""
        unattended = len(self._agenda) - self._setting_out
        for _ in range(min(unattended, self._executor.limiter.limit - self._walkers)):
            self._walkers += 1
            self._setting_out += 1
            group.create_task(self._join(group))

    async def _join(self, group: asyncio.TaskGroup) -> None:
        self._setting_out -= 1
        await self._walk(group)

    def _note(self, step: Step, result: Result) -> None:
        self._results[step.index] = result
        metrics.count_intent(type(step.intent).__name__, result.state)
        if result.state is State.DONE:
            self._binding.uids[step.id] = result.uid
            self._agenda.succeed(step)
            return
        for dependent in self._agenda.abandon(step):
            self._results[dependent.index] = Result(dependent.intent, State.SKIPPED)
            metrics.count_intent(type(dependent.intent).__name__, State.SKIPPED)

    async def _carry_out(self, step: Step) -> Result:
        try:
            reply = await self._send(step)
        except LeadershipLost as lost:
            return Result(step.intent, State.SKIPPED, error=lost)
        except KubeError as error:
            return await self._executor.inquiry.explain(step.intent, self._binding, error)
        except Exception as mistake:  # in this intent alone: the others are not to blame
            log.exception("intent cannot be sent", key=step.id)
            return Result(step.intent, State.FAILED, error=mistake)
        return Result(step.intent, State.DONE, reply.name, reply.uid)

    async def _send(self, step: Step) -> Reply:
        """Send within the limit. What was certainly not done is sent again, after waiting without a slot."""
        limiter = self._executor.limiter
        for attempt in range(_TRIES):
            await limiter.acquire(step.urgency)
            try:
                return await self._timed(step)
            except (ConnectError, TooManyRequests) as refusal:
                if attempt + 1 == _TRIES:
                    raise
                pause = self._executor.backoff.pause(attempt, self._executor.rng)
                if isinstance(refusal, TooManyRequests):
                    pause += min(refusal.retry_after or 0.0, _LONGEST_PAUSE)
            finally:
                limiter.release()
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _timed(self, step: Step) -> Reply:
        """Send once, and let the limiter learn how the server took it."""
        loop = asyncio.get_running_loop()
        limiter, began = self._executor.limiter, loop.time()
        try:
            reply = await self._executor.writer.send(step.intent, self._binding)
        except (TooManyRequests, LostReply):
            limiter.refused()
            raise
        # Deleting a collection takes as long as the collection is large: that says nothing about load.
        if not isinstance(step.intent, DeleteCollection):
            limiter.replied(loop.time() - began)
        return reply
