"""Which key is worked on next: once at a time, fairly, and later after each failure.

A key names a piece of the world that someone can bring in order by looking at all of it. What happened to it
is not kept, only that something did; so a thousand events cost one pass, and a pass that finds nothing to do
is always right. The rules:

- a key is worked on by one worker at a time; woken meanwhile, it is worked on once more afterwards;
- owners of keys that are ready take turns (see `line`); a key that is woken all the time goes to the end of
  its lane each time;
- a key has one next moment, the earliest that was named; beginning to work on it uses that moment up;
- failures delay the key by itself alone: exponentially, with jitter, until it succeeds. An event still wakes
  it at once, since the event may be what it was failing for;
- a key whose work waits for a slow server can be set aside: its worker serves others meanwhile. While a
  tenant has keys set aside and others wait, no more than half as many of its keys as there are workers are
  worked on; alone, it has all workers, and no more.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

import structlog

from grove.kube.client.retry import Backoff
from grove.kube.errors import KubeError
from grove.kube.metrics import QueueMetrics
from grove.kube.workqueue.delay_queue import DelayQueue
from grove.kube.workqueue.fair_queue import FairQueue, QueueLane

K = TypeVar("K", bound=Hashable)

NOW = float("-inf")
_ASIDE_OF_ALL = 4  # times the workers: so many keys may be set aside in all
_AFTER_CANCEL = 1.0  # how long cancelled work may take to clean up before shutdown goes on without it

log = structlog.get_logger("grove.kube.workqueue.queue")


class WorkQueue(Generic[K]):
    """Wakes keys and works on them. Make it inside a running loop; it works from `start` to `stop`."""

    def __init__(
        self,
        name: str,
        work: Callable[[K], Coroutine[Any, Any, object]],
        *,
        workers: int = 64,
        lane_of: Callable[[K], QueueLane] = QueueLane,
        tenant: Callable[[K], Hashable] = lambda _: None,
        backoff: Backoff | None = None,
        rng: random.Random | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"queue {name} has {workers} workers and would never work: give it at least one")
        self.name = name
        self._work = work
        self._workers = workers
        self._backoff = backoff or Backoff(first=0.05, longest=60.0)
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not secrets
        self._loop = asyncio.get_running_loop()
        self._open = False
        self._ready: FairQueue[K] = FairQueue(lane_of)
        self._requeued: dict[K, float] = {}  # woken while being worked on
        self._delayed: DelayQueue[K] = DelayQueue()
        self._running: dict[K, asyncio.Task[None]] = {}
        self._started: set[K] = set()
        self._failing: set[K] = set()  # said to have failed, by the work that is still running
        self._failures: dict[K, int] = {}
        self._tenant = tenant
        self._aside: set[K] = set()  # being worked on, without a worker of their own
        self._aside_of: Counter[Hashable] = Counter()  # how many, by tenant
        self._running_of: Counter[Hashable] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._metrics = QueueMetrics(name, depth=lambda: len(self._ready), oldest=self.oldest)

    def __len__(self) -> int:
        """How many keys wait for their turn."""
        return len(self._ready)

    @property
    def backlog(self) -> int:
        """How many keys wait for a worker. Where workers are free, those that wait do so for their tenant."""
        return len(self._ready) if len(self._running) - len(self._aside) >= self._workers else 0

    def enqueue(self, key: K, at: float | None = NOW, *, failed: bool = False) -> None:
        """Work on the key soon, or at a moment of the loop's clock; the earliest moment named wins.

        `None` names no moment, for whoever has none to name. `failed` adds the moment after the back-off,
        and counts against the key until work on it ends without failing.
        """
        now = self._loop.time()
        if failed:
            retry = now + self._count_failure(key)
            at = retry if at is None else min(at, retry)
        if at is None:
            return
        if at <= now:
            self._make_ready(key, now)
            self._dispatch()
        else:
            self._delayed.set(key, at)
            self._set_timer()

    def forget(self, key: K) -> None:
        """Do not work on the key until it is woken again, and think no worse of it for its failures."""
        self._ready.remove(key)
        self._requeued.pop(key, None)
        self._failures.pop(key, None)
        self._delayed.remove(key)

    def reset_backoff(self, key: K) -> None:
        """The next failure of the key counts as its first: what it failed for has changed."""
        self._failures.pop(key, None)

    def set_aside(self, key: K) -> None:
        """The work on the key waits for a slow server: another key may have its worker until it ends."""
        known = key in self._aside or key not in self._running
        if not known and len(self._aside) < _ASIDE_OF_ALL * self._workers:
            self._aside.add(key)
            self._aside_of[self._tenant(key)] += 1
            self._dispatch()

    def start(self) -> None:
        """Begin to work, on the keys woken before too."""
        self._open = True
        self._on_timer()

    async def stop(self, grace: float = 5.0) -> None:
        """Begin nothing more, let work in progress finish for `grace` seconds, then cancel it."""
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._running:
            return
        _, late = await asyncio.wait(self._running.values(), timeout=grace)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_AFTER_CANCEL)
        for key in self._running:
            log.error("work ignores its cancellation and is left behind", queue=self.name, key=key)

    def oldest(self) -> float:
        """For how many seconds the key that waits longest has been ready."""
        now = self._loop.time()
        return now - min(self._ready.ready_times(), default=now)

    def _count_failure(self, key: K) -> float:
        if key in self._running:
            self._failing.add(key)
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self._metrics.retries.inc()
        return self._backoff.pause(failures, self._rng)

    def _make_ready(self, key: K, now: float) -> None:
        if key not in self._running:
            self._ready.add(key, now)
        elif key in self._started:
            self._requeued.setdefault(key, now)
        # else: its task has yet to take the first step, so it has yet to look

    def _is_barred(self, key: K) -> bool:
        """Whether its tenant has keys set aside, and enough of them under way."""
        tenant = self._tenant(key)
        return self._aside_of[tenant] > 0 and self._running_of[tenant] >= max(1, self._workers // 2)

    def _dispatch(self) -> None:
        while self._open and self._ready and len(self._running) - len(self._aside) < self._workers:
            key = self._ready.pop(self._is_barred if self._aside else None)
            if key is None and len(self._running) < self._workers:
                key = self._ready.pop()
            if key is None:
                return
            task = self._loop.create_task(self._run_work(key), name=f"{self.name} {key}")
            self._running[key] = task
            self._running_of[self._tenant(key)] += 1
            # In a callback, which also runs for a task that was cancelled before its first step.
            task.add_done_callback(partial(self._finish, key, self._loop.time()))

    async def _run_work(self, key: K) -> None:
        self._started.add(key)
        self._delayed.remove(key)
        await self._work(key)

    def _finish(self, key: K, began: float, task: asyncio.Task[None]) -> None:
        self._metrics.seconds.observe(self._loop.time() - began)
        if task.cancelled():
            # Half done is not done: whoever starts the queue again begins with it.
            self._started.add(key)
            self.enqueue(key, None if self._open else NOW, failed=self._open)
        elif error := task.exception():
            self._log_failure(key, error)
            self.enqueue(key, None, failed=True)
        del self._running[key]
        self._leave(key, self._tenant(key))
        self._started.discard(key)
        if key in self._failing:
            self._failing.discard(key)
        else:
            self._failures.pop(key, None)
        if (since := self._requeued.pop(key, None)) is not None:
            self._ready.add(key, since)
        self._dispatch()

    def _leave(self, key: K, tenant: Hashable) -> None:
        counts = [self._running_of]
        if key in self._aside:
            self._aside.discard(key)
            counts.append(self._aside_of)
        for count in counts:
            count[tenant] -= 1
            if not count[tenant]:
                del count[tenant]

    def _log_failure(self, key: K, error: BaseException) -> None:
        if isinstance(error, KubeError):
            log.warning("work failed", queue=self.name, key=key, error=str(error))
        else:
            log.error("work failed in a way that nobody foresaw", queue=self.name, key=key, exc_info=error)

    def _on_timer(self) -> None:
        # It has rung, perhaps a trifle before its moment: what is not due yet needs another.
        self._timer = None
        now = self._loop.time()
        for key in self._delayed.pop_due(now):
            self._make_ready(key, now)
        self._dispatch()
        self._set_timer()

    def _set_timer(self) -> None:
        since = self._delayed.next_due()
        if self._timer is not None:
            if since == self._timer.when():
                return
            self._timer.cancel()
            self._timer = None
        if self._open and since is not None:
            self._timer = self._loop.call_at(since, self._on_timer)
