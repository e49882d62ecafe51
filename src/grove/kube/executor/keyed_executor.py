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
    words: str
    cause: str


OnWriteProblem = Callable[[K, tuple[WriteProblem, ...]], None]
OnWait = Callable[[K], None]


class KeyedExecutor(Generic[K]):
    """Executes plans of the keys of a queue. `on_problem` is called when writes of a key are slow or have an
    unknown outcome, and with an empty tuple when that is over; `on_wait` when a key frees its worker."""

    def __init__(
        self,
        executor: Executor,
        queue: Callable[[], WorkQueue[K]],
        on_problem: OnWriteProblem[K],
        on_wait: OnWait[K] = lambda _: None,
    ) -> None:
        self._executor, self._queue = executor, queue
        self._on_problem, self._on_wait = on_problem, on_wait
        self._unknown_writes: dict[K, tuple[UnknownWrite, ...]] = {}
        self._slow: dict[K, frozenset[WriteClass]] = {}
        self._timed_out: set[K] = set()

    async def execute(self, key: K, intents: Sequence[Intent]) -> Outcome:
        """Execute a plan, or a part of one."""
        outcome = await self._executor.execute(intents, _Progress(key, self))
        if outcome.unknown_writes:
            self._unknown_writes[key] = (*self._unknown_writes.get(key, ()), *outcome.unknown_writes)
            self._report(key)
        if any(isinstance(error, NoAnswer | UnknownOutcome) for error in outcome.errors):
            self._timed_out.add(key)
        return outcome

    def end_pass(self, key: K) -> None:
        """A reconcile of the key has ended. If none of its writes timed out, none is slow any more."""
        if key in self._timed_out:
            self._timed_out.discard(key)
        elif self._slow.pop(key, None):
            self._report(key)

    def detach(self, key: K) -> None:
        """A write of the key waits for the server: free the key's worker."""
        self._queue().detach(key)
        self._on_wait(key)

    def mark_slow(self, key: K, write_class: WriteClass) -> None:
        """A write of the key takes long: report it."""
        known = self._slow.get(key, frozenset())
        if write_class not in known:
            self._slow[key] = known | {write_class}
            self._report(key)

    async def verify(self, key: K) -> bool:
        """Read the objects of the key's unknown writes. False: some are still unknown, the key is requeued,
        and it must not be planned."""
        unknown = self._unknown_writes.pop(key, ())
        left = list(unknown)
        if left:
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
            if left:
                self._unknown_writes[key] = tuple(left)
            elif unknown:
                self._report(key)
        if left:
            again = asyncio.get_running_loop().time() + timing.UNKNOWN_WRITE_LONGEST_BACKOFF
            self._queue().enqueue(key, again, failed=True)
        return not left

    def forget(self, key: K) -> None:
        """The key does not exist any more."""
        reported = key in self._unknown_writes or key in self._slow
        self._unknown_writes.pop(key, None)
        self._slow.pop(key, None)
        self._timed_out.discard(key)
        if reported:
            self._on_problem(key, ())

    def _report(self, key: K) -> None:
        slow_writes = [
            WriteProblem(f"SLOW_{slow.verb.upper()}", _slow_message(slow), CAUSE)
            for slow in self._slow.get(key, ())
        ]
        unknown: dict[WriteClass, WriteProblem] = {}
        for write in self._unknown_writes.get(key, ()):
            write_class = self._executor.writer.write_class(write.intent)
            words = (
                f"it is unknown whether {write_class} took effect: "
                "the object is read again before anything else is done"
            )
            problem = WriteProblem(f"UNKNOWN_{write_class.verb.upper()}", words, write.reason)
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
