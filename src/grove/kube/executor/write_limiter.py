"""How many writes may be in flight at once: as many as the API server answers well, found out by its answers.

A fixed rate is wrong on every cluster but the one it was measured on. Here the limit grows while replies stay
as fast as they used to be, shrinks gently when they get slower (requests queue up somewhere), and is cut when
the server refuses with 429. It is shared by all plans, and only writes that fill it can move it.

A write that waits for a slow admission webhook uses no capacity of the server, but it would hold its slot. So
slow writes are set aside: they have slots of their own, three for each four of the others, of which one
tenant (a namespace) gets at most two. Where slots are short, tenants take turns.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from math import sqrt
from typing import NamedTuple

from msgspec import Struct

from grove.kube import metrics
from grove.kube.executor.tenant_queue import TenantQueue
from grove.kube.executor.write_latency import ANY, Latencies, WriteClass


class WritePriority(IntEnum):
    """Who goes first when all slots are taken."""

    WRITE = 0
    STATUS = 1


class LimitBounds(Struct, frozen=True):
    """Where the limit begins, and what it never leaves.

    Each write in flight is a connection with TLS buffers of its own, and a small server gains nothing from
    more than a few dozen: what it cannot do at once it queues.
    """

    initial: float = 32.0
    lowest: float = 2.0
    highest: float = 64.0


_LONG_TERM_WEIGHT = 0.01  # weight of one reply in the usual latency: about the last hundred replies
_RECENT_WEIGHT = 0.1  # and in the recent one: about the last ten
_TOLERANCE = 2.0  # replies up to this many times slower than usual are no reason to slow down
_SMOOTHING = 0.1  # how much of each correction is taken over at once
_USUAL_DECAY = 0.95  # how fast the usual latency follows when it turns out to be a memory of bad times
_REJECTION_FACTOR = 0.5
_REJECTION_WINDOW = 0.1  # refusals within so many seconds are one: the server shed them together
_WRITES_IN_A_ROW = 7  # so many deeds may overtake an observation that waits; then it goes


class LatencyGradient:
    """The arithmetic: a limit that follows the ratio of usual to recent latency. No clock, no waiting."""

    def __init__(self, bounds: LimitBounds) -> None:
        self._bounds = bounds
        self.limit = bounds.initial
        self._replies = 0
        self._usual = 0.0
        self._recent = 0.0
        self._cut_at = float("-inf")

    def record_reply(self, latency: float, in_flight: int, floor: float = 0.0) -> None:
        """Learn from a reply under load; a server that has little to do says nothing about its limits. What
        writes of this sort always take (`floor`), because of admission, is no sign of load either."""
        if in_flight * 2 < self.limit:
            return
        if self._usual and floor > self._usual:
            latency -= min(latency, floor) - self._usual
        self._replies += 1
        # The first replies count evenly: a burst begins with the fastest it will ever see.
        self._usual += max(_LONG_TERM_WEIGHT, 1 / self._replies) * (latency - self._usual)
        self._recent += max(_RECENT_WEIGHT, 1 / self._replies) * (latency - self._recent)
        if self._usual > 2 * self._recent:
            self._usual *= _USUAL_DECAY
        slower = self._recent / self._usual if self._usual else 1.0
        wanted = self.limit * min(1.0, max(_REJECTION_FACTOR, _TOLERANCE / slower if slower else 1.0)) + sqrt(
            self.limit
        )
        self._set(self.limit + _SMOOTHING * (wanted - self.limit))

    def record_rejection(self, now: float) -> None:
        """The server said 429: halve, but once for all the requests that it refused together."""
        if now - self._cut_at > max(self._recent, _REJECTION_WINDOW):
            self._cut_at = now
            self._set(self.limit * _REJECTION_FACTOR)

    def _set(self, limit: float) -> None:
        self.limit = min(self._bounds.highest, max(self._bounds.lowest, limit))


class _Waiting(NamedTuple):
    waiter: asyncio.Future[bool]
    sort: WriteClass
    on_slow: Callable[[], None]


class WriteLimiter:
    """Slots for writes in flight; the size follows a Gradient. Slow writes have slots of their own."""

    def __init__(self, bounds: LimitBounds | None = None) -> None:
        self._gradient = LatencyGradient(bounds or LimitBounds())
        self.latencies = Latencies()
        self._waiting: tuple[TenantQueue[_Waiting], ...] = (TenantQueue(), TenantQueue())
        self._slow: TenantQueue[_Waiting] = TenantQueue()
        self._overtaken = 0
        self._aside: Counter[str] = Counter()  # slow writes in flight, by tenant
        self.in_flight = 0
        self.on_free_slots: Callable[[int], None] | None = None
        """Called with the `free_slots` whenever a write ends and leaves some."""
        metrics.in_flight_limit.set_function(lambda: self._gradient.limit)

    @property
    def limit(self) -> int:
        """How many writes may be in flight now."""
        return int(self._gradient.limit)

    @property
    def aside(self) -> int:
        """How many slow writes are in flight, in slots of their own."""
        return self._aside.total() if self._aside else 0

    @property
    def free_slots(self) -> int:
        """How many slots there are for what can wait. Half of them are kept for what cannot: who finds all
        slots taken at one moment and one free at the next is still in the middle of a storm."""
        return max(0, self.limit // 2 - self.in_flight)

    async def acquire(
        self, priority: WritePriority, sort: WriteClass = ANY, on_slow: Callable[[], None] = lambda: None
    ) -> bool:
        """Wait for a slot; give it back with `release`. Returns whether it is one for slow writes (`aside`),
        which it is if writes of this sort are known to be slow; `on_slow` is called when that is known."""
        slow = self.latencies.is_slow(sort)
        if slow:
            on_slow()
        if not slow and self.in_flight < self.limit and not any(self._waiting):
            self.in_flight += 1
            return False
        if slow and not self._slow.holds(sort.namespace) and self._has_room_aside(sort.namespace):
            self._aside[sort.namespace] += 1
            return True
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiting = self._slow if slow else self._waiting[priority]
        waiting.add(sort.namespace, _Waiting(waiter, sort, on_slow))
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # admitted and cancelled in the same breath
                self.release(sort, aside=waiter.result())
            raise

    def release(self, sort: WriteClass = ANY, *, aside: bool = False) -> None:
        """Give the slot back."""
        if aside:
            self._aside[sort.namespace] -= 1
            if not self._aside[sort.namespace]:
                del self._aside[sort.namespace]
        else:
            self.in_flight -= 1
        self._admit()
        if self.on_free_slots is not None and (free_slots := self.free_slots):
            self.on_free_slots(free_slots)

    def set_aside(self, sort: WriteClass) -> bool:
        """A write in flight turns out to be slow. If this returns True it was set aside, others have its
        slot, and it is to be released as one `aside`. More of its tenant than its share may be set aside:
        they are in flight already."""
        if self.aside >= 2 * self.limit:
            return False
        self._aside[sort.namespace] += 1
        self.release(sort)
        return True

    def record_reply(self, latency: float, floor: float = 0.0) -> None:
        """A write was answered after `latency` seconds; its sort takes at least `floor`."""
        self._gradient.record_reply(latency, self.in_flight + self.aside, floor)

    def record_rejection(self) -> None:
        """A write was refused because there were too many."""
        self._gradient.record_rejection(asyncio.get_running_loop().time())

    def _has_room_aside(self, tenant: str) -> bool:
        # In the API server a write that waits for admission holds a seat of the operator's priority level,
        # of which there may be as few as two dozen: most must stay free for writes that are quick.
        return self._aside[tenant] < max(1, self.limit // 2) and self.aside < max(1, self.limit * 3 // 4)

    def _admit(self) -> None:
        """Give free slots to those who wait; the one admitted counts from now, not from when it runs."""
        while self.in_flight < self.limit and (next_ := self._next_waiter()) is not None:
            if next_.waiter.done():
                continue
            if self.latencies.is_slow(next_.sort):  # it has become so while this one waited
                self._slow.add(next_.sort.namespace, next_)
                next_.on_slow()
                continue
            self.in_flight += 1
            next_.waiter.set_result(False)
        while self._slow and (next_ := self._slow.take(self._has_room_aside)) is not None:
            if not next_.waiter.done():
                self._aside[next_.sort.namespace] += 1
                next_.waiter.set_result(True)

    def _next_waiter(self) -> _Waiting | None:
        writes, statuses = self._waiting
        if writes and (not statuses or self._overtaken < _WRITES_IN_A_ROW):
            self._overtaken = self._overtaken + 1 if statuses else 0
            return writes.take()
        self._overtaken = 0
        return statuses.take()
