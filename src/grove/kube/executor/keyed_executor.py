"""Executes the plans of queue keys: resolves unknown writes before the next plan of a key, and frees the
worker of a key whose writes are slow.

A write that got no answer may have taken effect. The executor reads the object a few times; if the server
does not answer by then, the unknown write is remembered for the key. `verify` reads again when the key is
worked on next, and only when everything is known may the key be planned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from grove import timing
from grove.api.intents import Intent
from grove.kube.errors import NoAnswer, UnknownOutcome
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import Outcome, UnknownWrite
from grove.kube.executor.write_latency import CAUSE, WriteClass
from grove.kube.workqueue.queue import WorkQueue

K = TypeVar("K", bound=Hashable)


class WriteProblem(NamedTuple):
    """A problem with writes of one class, for `status.lastErrors`."""

    code: str
    message: str
    cause: str


class WriteState(Struct):
    """What is remembered about the writes of one key."""

    unknown_writes: tuple[UnknownWrite, ...] = ()
    """Writes that got no answer and may have taken effect."""
    slow_writes: frozenset[WriteClass] = frozenset()
    """Classes of writes that are reported as slow."""
    write_timed_out: bool = False
    """Whether a write of the current pass got no answer."""


OnWriteProblem = Callable[[K, tuple[WriteProblem, ...]], None]
OnWait = Callable[[K], None]


class KeyedExecutor(Generic[K]):
    """Executes plans of the keys of a queue. `state_of` returns the state of a key, which the caller keeps.
    `on_problem` is called when writes of a key are slow or have an unknown outcome, and with an empty tuple
    when that is over; `on_wait` when a key frees its worker."""

    def __init__(
        self,
        executor: Executor,
        queue: WorkQueue[K],
        state_of: Callable[[K], WriteState],
        on_problem: OnWriteProblem[K],
        on_wait: OnWait[K] = lambda _: None,
    ) -> None:
        self._executor, self._queue, self._state_of = executor, queue, state_of
        self._on_problem, self._on_wait = on_problem, on_wait

    async def execute(self, key: K, intents: Sequence[Intent]) -> Outcome:
        """Execute a plan, or a part of one."""
        outcome = await self._executor.execute(intents, _Progress(key, self))
        state = self._state_of(key)
        if outcome.unknown_writes:
            state.unknown_writes = (*state.unknown_writes, *outcome.unknown_writes)
            self._report(key, state)
        if any(isinstance(error, NoAnswer | UnknownOutcome) for error in outcome.errors):
            state.write_timed_out = True
        return outcome

    def end_pass(self, key: K) -> None:
        """A reconcile of the key has ended. If none of its writes timed out, none is slow any more."""
        state = self._state_of(key)
        if state.slow_writes and not state.write_timed_out:
            state.slow_writes = frozenset()
            self._report(key, state)
        state.write_timed_out = False

    def detach(self, key: K) -> None:
        """A write of the key waits for the server: free the key's worker."""
        self._queue.detach(key)
        self._on_wait(key)

    def mark_slow(self, key: K, write_class: WriteClass) -> None:
        """A write of the key takes long: report it."""
        state = self._state_of(key)
        if write_class not in state.slow_writes:
            state.slow_writes |= {write_class}
            self._report(key, state)

    async def verify(self, key: K) -> bool:
        """Read the objects of the key's unknown writes. False: some are still unknown, the key is requeued,
        and it must not be planned."""
        state = self._state_of(key)
        if not state.unknown_writes:
            return True
        left = list(state.unknown_writes)
        self.detach(key)
        try:
            while left:
                write = left[0]
                result = await self._executor.unknown_writes.resolve_failed_write(
                    write.intent, write.deferred, write.error
                )
                if isinstance(result.error, UnknownOutcome):
                    break
                del left[0]
        finally:
            state.unknown_writes = tuple(left)
            if not left:
                self._report(key, state)
        if left:
            again = asyncio.get_running_loop().time() + timing.UNKNOWN_WRITE_LONGEST_BACKOFF
            self._queue.enqueue(key, again, failed=True)
        return not left

    def forget(self, key: K) -> None:
        """The key does not exist any more: none of its writes is a problem."""
        state = self._state_of(key)
        if state.unknown_writes or state.slow_writes:
            state.unknown_writes, state.slow_writes = (), frozenset()
            self._on_problem(key, ())

    def _report(self, key: K, state: WriteState) -> None:
        slow_writes = [
            WriteProblem(f"SLOW_{slow.verb.upper()}", _slow_message(slow), CAUSE)
            for slow in state.slow_writes
        ]
        unknown: dict[WriteClass, WriteProblem] = {}
        for write in state.unknown_writes:
            write_class = self._executor.writer.write_class(write.intent)
            message = (
                f"it is unknown whether {write_class} took effect: "
                "the object is read again before anything else is done"
            )
            problem = WriteProblem(f"UNKNOWN_{write_class.verb.upper()}", message, write.reason)
            unknown.setdefault(write_class, problem)
        self._on_problem(key, (*sorted(slow_writes), *sorted(unknown.values())))


def _slow_message(write_class: WriteClass) -> str:
    return f"{write_class} takes longer than {timing.REPORTED_WRITE:g} s"


class _Progress(Generic[K]):
    """The callbacks of the plan of one key."""

    def __init__(self, key: K, executor: KeyedExecutor[K]) -> None:
        self._key, self._executor = key, executor

    def on_wait(self) -> None:
        self._executor.detach(self._key)

    def on_slow(self, write_class: WriteClass) -> None:
        self._executor.mark_slow(self._key, write_class)
