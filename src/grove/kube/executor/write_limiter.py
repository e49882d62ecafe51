"""Limits the number of writes in flight to what the API server answers well, measured by its replies.

A fixed rate is wrong on every cluster but the one it was measured on. Here the limit grows while replies stay
as fast as usual, shrinks gradually when they get slower (requests queue up somewhere), and is halved when the
server rejects a write with 429. All plans share it, and only writes that fill it can change it.

A write that waits for a slow admission webhook uses no capacity of the server, but would occupy its slot. So
slow writes have slots of their own: for four slots of the others there are three, of which one tenant (a
namespace) gets at most two. Where slots are short, tenants take turns.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from math import sqrt
from typing import NamedTuple

from msgspec import Struct

from grove import timing
from grove.kube import metrics
from grove.kube.executor.write_latency import ANY, Latencies, WriteClass
from grove.kube.workqueue.round_robin import RoundRobinQueue


class WritePriority(IntEnum):
    """Which writes go first when all slots are occupied."""

    WRITE = 0
    STATUS = 1


class LimitBounds(Struct, frozen=True):
    """The limit at the start, and its bounds.

    Each write in flight needs a connection with TLS buffers, and a small server gains nothing from more than
    a few dozen: it queues what it cannot do at once, also the writes of schedulers and kubelets, without
    which no pod becomes ready.
    """

    initial: float = 32.0
    lowest: float = 2.0
    highest: float = 32.0


class LatencyGradient:
    """Computes a limit that follows the ratio of usual to recent latency. Has no clock and does not wait."""

    def __init__(self, bounds: LimitBounds) -> None:
        self._bounds = bounds
        self.limit = bounds.initial
        self._replies = 0
        self._usual = 0.0
        self._recent = 0.0
        self._cut_at = float("-inf")

    def record_reply(self, latency: float, in_flight: int, floor: float = 0.0) -> None:
        """Adjust the limit after a reply under load; replies without load say nothing about the limit. The
        time that writes of this class always take (`floor`), because of admission, is no sign of load."""
        if in_flight * 2 < self.limit:
            return
        if self._usual and floor > self._usual:
            latency -= min(latency, floor) - self._usual
        self._replies += 1
        # The first replies are averaged evenly: the first replies of a burst are its fastest.
        self._usual += max(timing.LIMITER_LONG_TERM_WEIGHT, 1 / self._replies) * (latency - self._usual)
        self._recent += max(timing.LIMITER_RECENT_WEIGHT, 1 / self._replies) * (latency - self._recent)
        if self._usual > 2 * self._recent:
            self._usual *= timing.LIMITER_USUAL_DECAY
        slower = self._recent / self._usual if self._usual else 1.0
        wanted = self.limit * min(
            1.0, max(timing.LIMITER_REJECTION_FACTOR, timing.LIMITER_TOLERANCE / slower if slower else 1.0)
        ) + sqrt(self.limit)
        self._set(self.limit + timing.LIMITER_SMOOTHING * (wanted - self.limit))

    def record_rejection(self, now: float) -> None:
        """The server answered 429: halve the limit, once for all requests that were rejected together."""
        if now - self._cut_at > max(self._recent, timing.LIMITER_REJECTION_WINDOW):
            self._cut_at = now
            self._set(self.limit * timing.LIMITER_REJECTION_FACTOR)

    def _set(self, limit: float) -> None:
        self.limit = min(self._bounds.highest, max(self._bounds.lowest, limit))


class _Waiting(NamedTuple):
    waiter: asyncio.Future[bool]
    write_class: WriteClass
    on_slow: Callable[[], None]


class WriteLimiter:
    """Slots for writes in flight, as many as a `LatencyGradient` allows, and others for slow writes."""

    def __init__(self, bounds: LimitBounds | None = None) -> None:
        self._gradient = LatencyGradient(bounds or LimitBounds())
        self.latencies = Latencies()
        self._waiting: tuple[RoundRobinQueue[str, _Waiting], ...] = (RoundRobinQueue(), RoundRobinQueue())
        self._waiting_slow: RoundRobinQueue[str, _Waiting] = RoundRobinQueue()
        self._overtaken = 0
        self._slow: Counter[str] = Counter()  # slow writes in flight, by tenant
        self.in_flight = 0
        self.on_free_slots: Callable[[int], None] | None = None
        """Called with the `free_slots` whenever a write ends and leaves some."""
        metrics.in_flight_limit.set_function(lambda: self._gradient.limit)

    @property
    def limit(self) -> int:
        """How many writes may be in flight now, slow ones not counted."""
        return int(self._gradient.limit)

    @property
    def slow_in_flight(self) -> int:
        """How many slow writes are in flight, in slots of their own."""
        return self._slow.total() if self._slow else 0

    @property
    def free_slots(self) -> int:
        """How many slots are free for work that can wait. Half of all slots are kept for work that cannot: a
        single free slot between two full moments is no sign that the load has ended."""
        return max(0, self.limit // 2 - self.in_flight)

    async def acquire(
        self,
        priority: WritePriority,
        write_class: WriteClass = ANY,
        on_slow: Callable[[], None] = lambda: None,
    ) -> bool:
        """Wait for a slot; give it back with `release`. Returns whether it is one for slow writes, which it
        is if writes of this class are known to be slow; `on_slow` is called when that is known."""
        tenant = write_class.namespace
        slow = self.latencies.is_slow(write_class)
        if slow:
            on_slow()
        if not slow and self.in_flight < self.limit and not any(self._waiting):
            self.in_flight += 1
            return False
        if slow and not self._waiting_slow.holds(tenant) and self._has_slow_slot(tenant):
            self._slow[tenant] += 1
            return True
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiting = self._waiting_slow if slow else self._waiting[priority]
        waiting.add(_Waiting(waiter, write_class, on_slow), tenant)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # it got a slot and was cancelled before it ran
                self.release(write_class, slow=waiter.result())
            raise

    def release(self, write_class: WriteClass = ANY, *, slow: bool = False) -> None:
        """Give the slot back; `slow`: it is one for slow writes."""
        if slow:
            self._slow[write_class.namespace] -= 1
            if not self._slow[write_class.namespace]:
                del self._slow[write_class.namespace]
        else:
            self.in_flight -= 1
        self._admit()
        if self.on_free_slots is not None and (free_slots := self.free_slots):
            self.on_free_slots(free_slots)

    def move_to_slow(self, write_class: WriteClass) -> bool:
        """Move a write in flight that turns out to be slow to a slot for slow writes. If this returns True,
        its slot is free for others, and it has to be released as `slow`. A tenant may exceed its share here:
        its writes are in flight already."""
        if self.slow_in_flight >= 2 * self.limit:
            return False
        self._slow[write_class.namespace] += 1
        self.release(write_class)
        return True

    def record_reply(self, latency: float, floor: float = 0.0) -> None:
        """A write was answered after `latency` seconds; writes of its class take at least `floor`."""
        self._gradient.record_reply(latency, self.in_flight + self.slow_in_flight, floor)

    def record_rejection(self) -> None:
        """A write was rejected because there were too many."""
        self._gradient.record_rejection(asyncio.get_running_loop().time())

    def _has_slow_slot(self, tenant: str) -> bool:
        # In the API server a write that waits for admission occupies a seat of the operator's priority level,
        # of which there may be as few as two dozen: most must stay free for fast writes.
        share, most = max(1, self.limit // 2), max(1, self.limit * 3 // 4)
        return self._slow[tenant] < share and self.slow_in_flight < most

    def _admit(self) -> None:
        """Give free slots to waiting writes; a write occupies its slot from now on, not from when it runs."""
        while self.in_flight < self.limit and (next_ := self._next_waiter()) is not None:
            if next_.waiter.done():
                continue
            if self.latencies.is_slow(next_.write_class):  # it became slow while this write waited
                self._waiting_slow.add(next_, next_.write_class.namespace)
                next_.on_slow()
                continue
            self.in_flight += 1
            next_.waiter.set_result(False)
        while self._waiting_slow and (next_ := self._waiting_slow.pop(self._has_slow_slot)) is not None:
            if not next_.waiter.done():
                self._slow[next_.write_class.namespace] += 1
                next_.waiter.set_result(True)

    def _next_waiter(self) -> _Waiting | None:
        writes, statuses = self._waiting
        if writes and (not statuses or self._overtaken < timing.WRITES_BEFORE_A_STATUS):
            self._overtaken = self._overtaken + 1 if statuses else 0
            return writes.pop()
        self._overtaken = 0
        return statuses.pop()
