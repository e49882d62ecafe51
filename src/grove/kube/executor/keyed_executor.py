"""Plans of keys: what is in doubt is read before the next plan, and slow writes do not hold a worker.

A write that got no answer may have taken effect. The executor reads the object a few times; if the server
does not answer by then, the key remembers the doubt and its worker is freed. `verify` reads again when the
key's turn comes, and only when everything is known may the key be planned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from grove.api.intents import Intent
from grove.kube.errors import NoAnswer, UnknownOutcome
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import Outcome, UnknownWrite
from grove.kube.executor.write_latency import CAUSE, REPORTED, WriteClass
from grove.kube.workqueue.queue import WorkQueue

K = TypeVar("K", bound=Hashable)

_LONGEST_BACKOFF = 10.0
"""Seconds after which what is in doubt is read again: the return of the server is no event."""


class WriteProblem(NamedTuple):
    """What is wrong with writes of one sort."""

    code: str
    words: str
    cause: str


OnWriteProblem = Callable[[K, tuple[WriteProblem, ...]], None]
OnWait = Callable[[K], None]


class KeyedExecutor(Generic[K]):
    """Carries out plans of the keys of a queue. `on_trouble` is called when writes of a key take long or have
    an unknown outcome, and with nothing when that is over; `on_wait` when a key frees its worker."""

    def __init__(
        self,
        executor: Executor,
        queue: Callable[[], WorkQueue[K]],
        on_trouble: OnWriteProblem[K],
        on_wait: OnWait[K] = lambda _: None,
    ) -> None:
        self._executor, self._queue = executor, queue
        self._on_trouble, self._on_wait = on_trouble, on_wait
        self._unknown_writes: dict[K, tuple[UnknownWrite, ...]] = {}
        self._slow: dict[K, frozenset[WriteClass]] = {}
        self._ran_out: set[K] = set()

    async def execute(self, key: K, intents: Sequence[Intent]) -> Outcome:
        """Carry out a plan, or a part of one."""
        outcome = await self._executor.execute(intents, _Progress(key, self))
        if outcome.doubts:
            self._unknown_writes[key] = (*self._unknown_writes.get(key, ()), *outcome.doubts)
            self._report(key)
        if any(isinstance(error, NoAnswer | UnknownOutcome) for error in outcome.errors):
            self._ran_out.add(key)
        return outcome

    def end_pass(self, key: K) -> None:
        """A pass over the key has ended. If none of its writes ran out of time, none is slow any more."""
        if key in self._ran_out:
            self._ran_out.discard(key)
        elif self._slow.pop(key, None):
            self._report(key)

    def waits(self, key: K) -> None:
        """A write of the key waits for the server."""
        self._queue().set_aside(key)
        self._on_wait(key)

    def is_slow(self, key: K, sort: WriteClass) -> None:
        """A write of the key takes long."""
        known = self._slow.get(key, frozenset())
        if sort not in known:
            self._slow[key] = known | {sort}
            self._report(key)

    async def verify(self, key: K) -> bool:
        """Read what is in doubt about the key. False: it is still unknown, the key is requeued, and it must
        not be planned."""
        doubts = self._unknown_writes.pop(key, ())
        left = list(doubts)
        if left:
            self.waits(key)
        try:
            while left:
                doubt = left[0]
                result = await self._executor.unknown_writes.resolve_failed_write(
                    doubt.intent, doubt.deferred, doubt.error
                )
                if isinstance(result.error, UnknownOutcome):
                    break
                del left[0]
        finally:
            if left:
                self._unknown_writes[key] = tuple(left)
            elif doubts:
                self._report(key)
        if left:
            again = asyncio.get_running_loop().time() + _LONGEST_BACKOFF
            self._queue().enqueue(key, again, failed=True)
        return not left

    def forget(self, key: K) -> None:
        """There is no such key any more."""
        self._unknown_writes.pop(key, None)
        self._slow.pop(key, None)
        self._ran_out.discard(key)

    def _report(self, key: K) -> None:
        slow = [
            WriteProblem(f"SLOW_{sort.verb.upper()}", _slow(sort), CAUSE) for sort in self._slow.get(key, ())
        ]
        unknown: dict[WriteClass, WriteProblem] = {}
        for doubt in self._unknown_writes.get(key, ()):
            sort = self._executor.writer.sort(doubt.intent)
            words = f"it is unknown whether {sort} took effect: it is read again before anything else is done"
            unknown.setdefault(sort, WriteProblem(f"UNKNOWN_{sort.verb.upper()}", words, doubt.why))
        self._on_trouble(key, (*sorted(slow), *sorted(unknown.values())))


def _slow(sort: WriteClass) -> str:
    return f"{sort} takes longer than {REPORTED:g} s"


class _Progress(Generic[K]):
    """What happens to the writes of one key."""

    def __init__(self, key: K, writes: KeyedExecutor[K]) -> None:
        self._key, self._writes = key, writes

    def waits(self) -> None:
        self._writes.waits(self._key)

    def is_slow(self, sort: WriteClass) -> None:
        self._writes.is_slow(self._key, sort)
