"""Measures the longest pause of the event loop: the time in which nothing but one iteration of it ran.

While one callback runs, no probe is answered, no lease renewed and no other set reconciled. So the longest
pause shows whether one tenant delays the others. It is measured where the loop waits for events, in the
selector: the time from the end of one wait to the beginning of the next. That measures every pause exactly;
a timer that samples would miss those in between.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any

from prometheus_client import Gauge

from grove import timing

longest_pause = Gauge(
    "grove_event_loop_longest_pause_seconds",
    "The longest iteration of the event loop in the last one to two minutes",
)


class Pauses:
    """The longest pause of the current window of time and of the one before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._current = self._before = 0.0

    def record(self, seconds: float, now: float) -> None:
        """Record that one iteration of the loop took so many seconds."""
        if now - self._since >= timing.EVENT_LOOP_PAUSE_WINDOW:
            self._start_window(now)
        if seconds > self._current:
            self._current = seconds

    def longest(self) -> float:
        """The longest pause of both windows."""
        now = self._clock()
        if now - self._since >= timing.EVENT_LOOP_PAUSE_WINDOW:
            self._start_window(now)
        return max(self._current, self._before)

    def _start_window(self, now: float) -> None:
        self._before = self._current if now - self._since < 2 * timing.EVENT_LOOP_PAUSE_WINDOW else 0.0
        self._current, self._since = 0.0, now


class TimedSelector(selectors.DefaultSelector):
    """Waits as the default selector does, and records the time from one wait to the next."""

    def __init__(self, pauses: Pauses, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._pauses, self._clock = pauses, clock
        self._resumed: float | None = None

    def select(self, timeout: float | None = None) -> Any:
        """Wait for events."""
        if self._resumed is not None:
            now = self._clock()
            self._pauses.record(now - self._resumed, now)
        try:
            return super().select(timeout)
        finally:
            self._resumed = self._clock()


def timed_loop() -> asyncio.AbstractEventLoop:
    """An event loop whose pauses are a metric."""
    pauses = Pauses()
    longest_pause.set_function(pauses.longest)
    return asyncio.SelectorEventLoop(TimedSelector(pauses))
