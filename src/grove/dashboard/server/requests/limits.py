"""How often senders are answered, and how many explanations are computed at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from grove import timing
from grove.dashboard.access.errors import TooMany
from grove.dashboard.access.rate_limiter import Rate, RateLimiter


class Limits:
    """The limits of one server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._requests = RateLimiter(Rate(*timing.API_RATE), clock)
        self._explanations = RateLimiter(Rate(*timing.EXPLANATION_RATE), clock)
        self._turns = asyncio.Semaphore(timing.EXPLANATIONS_AT_ONCE)
        self._waiting = 0

    def check(self, key: str, cost: int = 1) -> None:
        """Count a request of a sender, or as several. Raises TooMany."""
        if seconds := self._requests.take(key, cost):
            raise TooMany("requests", seconds)

    @asynccontextmanager
    async def explaining(self, key: str) -> AsyncIterator[None]:
        """Have a turn of the explanations. Raises TooMany."""
        if seconds := self._explanations.take(key):
            raise TooMany("explanations", seconds)
        if self._waiting >= timing.EXPLANATIONS_WAITING:
            raise TooMany("explanations of all users", timing.EXPLANATIONS_WAITING)
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()
