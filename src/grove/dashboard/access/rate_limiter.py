"""Limits how often one sender is answered: a token bucket each. Pure, apart from its clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from grove import timing


class Rate(Struct, frozen=True):
    """So many at once, and so many a second in the long run."""

    burst: int
    per_second: float


class RateLimiter:
    """The buckets of all senders. The one that was not used for longest is dropped above a number."""

    def __init__(
        self, rate: Rate, clock: Callable[[], float] = time.monotonic, kept: int = timing.RATE_LIMITS_KEPT
    ) -> None:
        self._rate, self._clock, self._kept = rate, clock, kept
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str, cost: int = 1) -> float:
        """0 if the sender may go on; else the seconds after which it may. `cost`: how many requests it counts
        as, at most as many as the burst."""
        now = self._clock()
        left, at = self._buckets.pop(key, (float(self._rate.burst), now))
        left = min(self._rate.burst, left + (now - at) * self._rate.per_second)
        allowed = left >= cost
        if len(self._buckets) >= self._kept:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[key] = (left - cost if allowed else left, now)
        return 0.0 if allowed else (cost - left) / self._rate.per_second
