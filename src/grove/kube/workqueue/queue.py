"""The work queue: decides which key is worked on next, with fair turns and a back-off after failures.

The work on a key observes everything that belongs to it, so the queue stores no events, only that the key
needs work: a thousand events cost one reconcile, and one that finds nothing to do does no harm. The rules:

- a key is worked on by one worker at a time; enqueued meanwhile, it is worked on once more afterwards;
- tenants and owners of ready keys take turns (see `fair_queue`); a key that is enqueued all the time goes to
  the end of its lane each time;
- a key has one due time, the earliest that was requested; starting to work on it clears that time;
- failures delay only the key itself: exponentially, with jitter, until it succeeds. A watch event still
  enqueues it at once, since the event may remove the cause of the failure;
- a key whose work waits for a slow server can be detached: its worker serves others meanwhile. While a
  tenant has detached keys and others wait, no more than half as many of its keys as there are workers are
  worked on; alone, it has all workers, and no more.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from grove import timing
from grove.kube.client.retry import Backoff
from grove.kube.errors import KubeError
from grove.kube.metrics import QueueMetrics
from grove.kube.workqueue.delay_queue import DelayQueue
from grove.kube.workqueue.fair_queue import FairQueue, QueueLane
from grove.logger import get_logger

K = TypeVar("K", bound=Hashable)

NOW = float("-inf")

log = get_logger("grove.kube.workqueue.queue")


class ExpectedFailure(Exception):
    """A failure whose cause is known and stated in the message: it is logged without a traceback."""


class WorkQueue(Generic[K]):
    """Works on enqueued keys, from `start` to `stop`. Create it inside a running event loop."""

    def __init__(
        self,
        name: str,
        work: Callable[[K], Coroutine[Any, Any, object]],
        *,
        workers: int = timing.WORKERS,
        lane_of: Callable[[K], QueueLane] = QueueLane,
        tenant: Callable[[K], Hashable] = lambda _: None,
        backoff: Backoff | None = None,
        rng: random.Random | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"queue {name} has {workers} workers: give it at least one")
        self.name = name
        self._work = work
        self._workers = workers
        self._backoff = backoff or Backoff(*timing.QUEUE_BACKOFF)
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not secrets
        self._loop = asyncio.get_running_loop()
        self._open = False
        self._ready: FairQueue[K] = FairQueue(lane_of, tenant)
        self._requeued: dict[K, float] = {}  # enqueued while being worked on
        self._delayed: DelayQueue[K] = DelayQueue()
        self._running: dict[K, asyncio.Task[None]] = {}
        self._started: set[K] = set()
        self._failing: set[K] = set()  # marked as failed by work that is still running
        self._failures: dict[K, int] = {}
        self._tenant = tenant
        self._detached: set[K] = set()  # being worked on, without occupying a worker
        self._detached_of: Counter[Hashable] = Counter()  # how many, by tenant
        self._running_of: Counter[Hashable] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._metrics = QueueMetrics(name, depth=lambda: len(self._ready), oldest=self.oldest)

    def __len__(self) -> int:
        """How many keys are ready and wait for a worker."""
        return len(self._ready)

    @property
    def backlog(self) -> int:
        """How many keys wait because all workers are busy. If workers are free, keys wait only because their
        tenant has reached its share."""
        return len(self._ready) if len(self._running) - len(self._detached) >= self._workers else 0

    def enqueue(self, key: K, at: float | None = NOW, *, failed: bool = False) -> None:
        """Work on the key soon, or at a time of the loop's clock; the earliest requested time wins.

        `None` requests no time. `failed` requests the time after the back-off, and counts as a failure of the
        key until work on it ends without one.
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
        """Do not work on the key until it is enqueued again, and forget its failures."""
        self._ready.remove(key)
        self._requeued.pop(key, None)
        self._failures.pop(key, None)
        self._delayed.remove(key)

    def reset_backoff(self, key: K) -> None:
        """The next failure of the key counts as its first: the cause of its failures has changed."""
        self._failures.pop(key, None)

    def detach(self, key: K) -> None:
        """The work on the key waits for a slow server: it goes on without occupying a worker."""
        known = key in self._detached or key not in self._running
        if not known and len(self._detached) < timing.DETACHED_KEYS_PER_WORKER * self._workers:
            self._detached.add(key)
            self._detached_of[self._tenant(key)] += 1
            self._dispatch()

    def start(self) -> None:
        """Start to work, also on keys that were enqueued before."""
        self._open = True
        self._on_timer()

    async def stop(self, grace: float = timing.QUEUE_STOP_TIMEOUT) -> None:
        """Start nothing more, let work in progress finish for `grace` seconds, then cancel it."""
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
            await asyncio.wait(late, timeout=timing.CANCELLED_WORK_TIMEOUT)
        for key in self._running:
            log.error("work is abandoned", queue=self.name, key=key, action="stop", reason="it was cancelled")

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
        # else: its task has not run yet, so it has not observed anything yet

    def _is_below_its_share(self, tenant: Hashable) -> bool:
        """Whether the tenant may have another key worked on: it has no detached keys, or fewer than its share
        of the workers."""
        return not self._detached_of[tenant] or self._running_of[tenant] < max(1, self._workers // 2)

    def _dispatch(self) -> None:
        while self._open and self._ready and len(self._running) - len(self._detached) < self._workers:
            key = self._ready.pop(self._is_below_its_share if self._detached else None)
            if key is None and len(self._running) < self._workers:
                key = self._ready.pop()
            if key is None:
                return
            task = self._loop.create_task(self._run_work(key), name=f"{self.name} {key}")
            self._running[key] = task
            self._running_of[self._tenant(key)] += 1
            # In a callback, which also runs for a task that was cancelled before it ran.
            task.add_done_callback(partial(self._finish, key, self._loop.time()))

    async def _run_work(self, key: K) -> None:
        self._started.add(key)
        self._delayed.remove(key)
        await self._work(key)

    def _finish(self, key: K, started_at: float, task: asyncio.Task[None]) -> None:
        self._metrics.seconds.observe(self._loop.time() - started_at)
        if task.cancelled():
            # The work is incomplete: it is repeated when the queue is started again.
            self._started.add(key)
            self.enqueue(key, None if self._open else NOW, failed=self._open)
        elif error := task.exception():
            self._log_failure(key, error)
            self.enqueue(key, None, failed=True)
        del self._running[key]
        self._uncount(key, self._tenant(key))
        self._started.discard(key)
        if key in self._failing:
            self._failing.discard(key)
        else:
            self._failures.pop(key, None)
        if (since := self._requeued.pop(key, None)) is not None:
            self._ready.add(key, since)
        self._dispatch()

    def _uncount(self, key: K, tenant: Hashable) -> None:
        counts = [self._running_of]
        if key in self._detached:
            self._detached.discard(key)
            counts.append(self._detached_of)
        for count in counts:
            count[tenant] -= 1
            if not count[tenant]:
                del count[tenant]

    def _log_failure(self, key: K, error: BaseException) -> None:
        bound = log.bind(queue=self.name, key=key, action="retry", reason=str(error))
        if isinstance(error, KubeError | ExpectedFailure):
            bound.warning("work failed")
        else:
            self._metrics.unexpected_errors.inc()
            bound.error("work failed with an unexpected error", exc_info=error)

    def _on_timer(self) -> None:
        # It may have fired slightly early: keys that are not due yet need another timer.
        self._timer = None
        now = self._loop.time()
        for key in self._delayed.pop_due(now):
            self._make_ready(key, now)
        self._dispatch()
        self._set_timer()

    def _set_timer(self) -> None:
        due = self._delayed.next_due()
        if self._timer is not None:
            if due == self._timer.when():
                return
            self._timer.cancel()
            self._timer = None
        if self._open and due is not None:
            self._timer = self._loop.call_at(due, self._on_timer)
