"""Computes large plans in a thread, so that the event loop keeps serving probes, leases and other sets.

Plans are pure functions of frozen snapshots, so they can be computed in any thread; the snapshots are read
from the caches in the event loop. Small plans are computed there too: a thread costs more than they do.

There is one thread, which pauses after each plan for as long as the plan took: large plans take at most half
of one core. A key that finds it busy is requeued and does not hold a worker meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from grove import timing

T = TypeVar("T")


class PlanThreadBusy(Exception):
    """The thread is computing, or pauses; `at` is the time to requeue at, by the loop's clock."""

    def __init__(self, at: float) -> None:
        super().__init__(at)
        self.at = at


class PlanThread:
    """Runs one function at a time in a thread."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._running = False
        self._rests_until = 0.0

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Reserve the thread for `run`: no other key takes it while the snapshot is read. Raises
        PlanThreadBusy."""
        now = asyncio.get_running_loop().time()
        if self._running:
            raise PlanThreadBusy(now + timing.PLAN_THREAD_RETRY)
        if now < self._rests_until:
            raise PlanThreadBusy(self._rests_until)
        self._running = True
        try:
            yield
        finally:
            self._running = False

    async def run(self, function: Callable[[], T]) -> T:
        """Run the function in the thread, which is reserved, and return its result."""
        loop = asyncio.get_running_loop()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "plan")
        began = loop.time()
        try:
            return await loop.run_in_executor(self._threads, function)
        finally:
            # A pass that was cancelled leaves its thread behind: the next one queues after it.
            self._rests_until = 2 * loop.time() - began
