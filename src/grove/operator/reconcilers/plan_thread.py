"""Large plans are made in a thread, so that the event loop goes on: probes, leases, other sets.

Plans are pure functions of frozen snapshots, so they can be made anywhere; what they are made from is read
from the caches in the event loop. Small plans are made there too: a thread costs more than they do.

There is one thread, which rests after each plan for as long as the plan took: large plans take at most half
of one core. A key that finds it busy comes back later and does not hold a worker meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE = 500
"""Pods, or replicas, from which a plan is large. Up to here one takes about 20 ms."""
_AGAIN = 0.1


class PlanThreadBusy(Exception):
    """The thread is at work, or rests; `at` is when to come back, by the loop's clock."""

    def __init__(self, at: float) -> None:
        super().__init__(at)
        self.at = at


class PlanThread:
    """Runs one function at a time in a thread."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._running = False
        self._rests_until = 0.0

    def check(self) -> None:
        """Raises PlanThreadBusy if nothing can be run now. To be asked before anything is prepared."""
        now = asyncio.get_running_loop().time()
        if self._running:
            raise PlanThreadBusy(now + _AGAIN)
        if now < self._rests_until:
            raise PlanThreadBusy(self._rests_until)

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function returns. Raises PlanThreadBusy."""
        self.check()
        loop = asyncio.get_running_loop()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "plan")
        self._running, began = True, loop.time()
        try:
            return await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))
        finally:
            # A pass that was cancelled leaves its thread behind: the next one queues after it.
            self._running = False
            self._rests_until = 2 * loop.time() - began
