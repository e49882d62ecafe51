"""How many writes may be in flight at once: as many as the API server answers well, found out by its answers.

A fixed rate is wrong on every cluster but the one it was measured on. Here the limit grows while replies stay
as fast as they used to be, shrinks gently when they get slower (requests queue up somewhere), and is cut when
the server refuses with 429. It is shared by all plans, and only writes that fill it can move it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from math import sqrt

from msgspec import Struct

from grove.kube import metrics


class Urgency(IntEnum):
    """Who goes first when all slots are taken."""

    DEED = 0
    OBSERVATION = 1


class Bounds(Struct, frozen=True):
    """Where the limit begins, and what it never leaves.

    Each write in flight is a connection with TLS buffers of its own, and a small server gains nothing from
    more than a few dozen: what it cannot do at once it queues.
    """

    initial: float = 32.0
    lowest: float = 2.0
    highest: float = 64.0


_LONG = 0.01  # weight of one reply in the usual latency: about the last hundred replies
_SHORT = 0.1  # and in the recent one: about the last ten
_TOLERANCE = 2.0  # replies up to this many times slower than usual are no reason to slow down
_SMOOTHING = 0.1  # how much of each correction is taken over at once
_FORGETTING = 0.95  # how fast the usual latency follows when it turns out to be a memory of bad times
_CUT = 0.5
_ONE_REFUSAL = 0.1  # refusals within so many seconds are one: the server shed them together
_DEEDS_IN_A_ROW = 7  # so many deeds may overtake an observation that waits; then it goes


class Gradient:
    """The arithmetic: a limit that follows the ratio of usual to recent latency. No clock, no waiting."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.limit = bounds.initial
        self._replies = 0
        self._usual = 0.0
        self._recent = 0.0
        self._cut_at = float("-inf")

    def replied(self, latency: float, in_flight: int) -> None:
        """Learn from a reply under load; a server that has little to do says nothing about its limits."""
        if in_flight * 2 < self.limit:
            return
        self._replies += 1
        # The first replies count evenly: a burst begins with the fastest it will ever see.
        self._usual += max(_LONG, 1 / self._replies) * (latency - self._usual)
        self._recent += max(_SHORT, 1 / self._replies) * (latency - self._recent)
        if self._usual > 2 * self._recent:
            self._usual *= _FORGETTING
        slower = self._recent / self._usual if self._usual else 1.0
        wanted = self.limit * min(1.0, max(_CUT, _TOLERANCE / slower if slower else 1.0)) + sqrt(self.limit)
        self._set(self.limit + _SMOOTHING * (wanted - self.limit))

    def refused(self, now: float) -> None:
        """The server said 429: halve, but once for all the requests that it refused together."""
        if now - self._cut_at > max(self._recent, _ONE_REFUSAL):
            self._cut_at = now
            self._set(self.limit * _CUT)

    def _set(self, limit: float) -> None:
        self.limit = min(self._bounds.highest, max(self._bounds.lowest, limit))


class Limiter:
    """Slots for writes in flight; the size follows a Gradient."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._gradient = Gradient(bounds or Bounds())
        self._waiting: tuple[deque[asyncio.Future[None]], ...] = (deque(), deque())
        self._overtaken = 0
        self.in_flight = 0
        self.on_room: Callable[[int], None] | None = None
        """Called with the `room` whenever a write ends and leaves some."""
        metrics.in_flight_limit.set_function(lambda: self._gradient.limit)

    @property
    def limit(self) -> int:
        """How many writes may be in flight now."""
        return int(self._gradient.limit)

    @property
    def room(self) -> int:
        """How many slots there are for what can wait. Half of them are kept for what cannot: who finds all
        slots taken at one moment and one free at the next is still in the middle of a storm."""
        return max(0, self.limit // 2 - self.in_flight)

    async def acquire(self, urgency: Urgency) -> None:
        """Wait for a slot; give it back with `release`."""
        if self.in_flight < self.limit and not any(self._waiting):
            self.in_flight += 1
        else:
            await self._wait(urgency)

    def release(self) -> None:
        """Give the slot back."""
        self.in_flight -= 1
        self._admit()
        if self.on_room is not None and (room := self.room):
            self.on_room(room)

    def replied(self, latency: float) -> None:
        """A write was answered after `latency` seconds."""
        self._gradient.replied(latency, self.in_flight)

    def refused(self) -> None:
        """A write was refused because there were too many."""
        self._gradient.refused(asyncio.get_running_loop().time())

    async def _wait(self, urgency: Urgency) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[urgency].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # admitted and cancelled in the same breath
                self.in_flight -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        """Give free slots to those who wait; the one admitted counts from now, not from when it runs."""
        while self.in_flight < self.limit and (turn := self._next_turn()) is not None:
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    def _next_turn(self) -> asyncio.Future[None] | None:
        deeds, observations = self._waiting
        if deeds and (not observations or self._overtaken < _DEEDS_IN_A_ROW):
            self._overtaken = self._overtaken + 1 if observations else 0
            return deeds.popleft()
        self._overtaken = 0
        return observations.popleft() if observations else None
