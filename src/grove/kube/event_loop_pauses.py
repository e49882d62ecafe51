"""How long the event loop was away: the longest time in which nothing but one turn of it ran.

While one callback runs, no probe is answered, no lease renewed and no other set served. So the longest pause
is what tells whether one tenant holds up the others. It is measured where the loop waits for events, in the
selector: the time from the end of one wait to the beginning of the next. That sees every pause, exactly and
without a timer; a timer that runs now and then would miss those in between.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any

from prometheus_client import Gauge

_WINDOW = 60.0
"""Seconds. Who asks less often than this may miss a pause."""

longest_pause = Gauge(
    "grove_event_loop_longest_pause_seconds",
    "The longest time in which the event loop ran one turn, over the last one to two minutes",
)


class Pauses:
    """The longest of the latest pauses: of this window of time, and of the one before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._current = self._before = 0.0

    def note(self, seconds: float, now: float) -> None:
        """One turn of the loop took so long."""
        if now - self._since >= _WINDOW:
            self._turn(now)
        if seconds > self._current:
            self._current = seconds

    def longest(self) -> float:
        """The longest pause that is still remembered."""
        now = self._clock()
        if now - self._since >= _WINDOW:
            self._turn(now)
        return max(self._current, self._before)

    def _turn(self, now: float) -> None:
        self._before = self._current if now - self._since < 2 * _WINDOW else 0.0
        self._current, self._since = 0.0, now


class TimedSelector(selectors.DefaultSelector):
    """Waits as the default selector does, and notes how long the loop took from one wait to the next."""

    def __init__(self, pauses: Pauses, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._pauses, self._clock = pauses, clock
        self._resumed: float | None = None

    def select(self, timeout: float | None = None) -> Any:
        """Wait for events."""
        if self._resumed is not None:
            now = self._clock()
            self._pauses.note(now - self._resumed, now)
        try:
            return super().select(timeout)
        finally:
            self._resumed = self._clock()


def timed_loop() -> asyncio.AbstractEventLoop:
    """An event loop whose pauses are a metric."""
    pauses = Pauses()
    longest_pause.set_function(pauses.longest)
    return asyncio.SelectorEventLoop(TimedSelector(pauses))
