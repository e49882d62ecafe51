"""Leadership, and the fence that keeps a former leader from writing.

Leadership ends by the clock, without a notification: a process that was stopped for a minute resumes in the
middle of a plan, and must not send one more write. So each write is checked against the deadline just before
it is sent (`FencedTransport`), and times out before the lease could have passed to another. A conditional
write carries a fence of its own, which the server checks, and may take longer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import msgspec

from grove.kube.client.transport import Request, Response, Stream, Transport
from grove.kube.errors import KubeError

Clock = Callable[[], float]


def boottime() -> float:
    """Seconds on a clock that also advances while the process is stopped, and on Linux during suspend."""
    return time.clock_gettime(_CLOCK)


_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LeadershipLost(KubeError):
    """This process is not the leader any more; nothing was sent."""


class Leadership:
    """One term of leadership. It starts with an expired deadline: the elector extends it."""

    def __init__(self, clock: Clock = boottime) -> None:
        self._clock = clock
        self._deadline = float("-inf")
        self._ended = asyncio.Event()
        self._end_reason = "it was never won"

    @property
    def held(self) -> bool:
        """Whether a write may be sent now."""
        return not self._ended.is_set() and self._clock() < self._deadline

    @property
    def is_over(self) -> bool:
        """Whether the term has ended for good."""
        return self._ended.is_set()

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, unless it is extended."""
        return self._deadline - self._clock()

    def check(self) -> None:
        """Raise LeadershipLost unless a write may be sent now."""
        if not self.held:
            raise LeadershipLost(f"no longer the leader ({self._end_reason}): the write was not sent")

    def extend(self, deadline: float) -> None:
        """The lease was renewed: writes may be sent until then."""
        if not self.is_over:
            self._deadline = deadline
            self._end_reason = "the lease was not renewed in time"

    def end(self, why: str) -> None:
        """Never write again in this term."""
        if not self._ended.is_set():
            self._end_reason = why
            self._ended.set()

    async def ended(self) -> str:
        """Wait for the end of the term; returns why it ended."""
        await self._ended.wait()
        return self._end_reason


class FencedTransport:
    """A transport that lets writes through only while leadership is held. Reads and watches always pass."""

    def __init__(self, inner: Transport, leadership: Leadership, longest_write: float) -> None:
        self._inner = inner
        self._leadership = leadership
        self._longest_write = longest_write

    async def send(self, request: Request) -> Response:
        """Send a read; send a write if leadership is held, else raise LeadershipLost."""
        if request.is_write:
            self._leadership.check()
            if request.timeout > self._longest_write and not request.conditional:
                request = msgspec.structs.replace(request, timeout=self._longest_write)
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Open a watch, which needs no leadership."""
        return self._inner.stream(request)

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()
