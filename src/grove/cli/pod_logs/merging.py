"""Merges the logs of several containers by the times of their lines."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing

from grove.cli.pod_logs.lines import LogLine
from grove.cli.pod_logs.sources import LogSource

Log = AsyncGenerator[list[LogLine]]


class _Head:
    """The next line of one log."""

    def __init__(self, log: Log) -> None:
        self._log, self._lines, self._next = log, list[LogLine](), 0

    async def line(self) -> LogLine | None:
        """The next line, which is then taken; None at the end."""
        while self._next >= len(self._lines):
            try:
                self._lines, self._next = await anext(self._log), 0
            except StopAsyncIteration:
                return None
        self._next += 1
        return self._lines[self._next - 1]


async def merged(logs: Sequence[tuple[LogSource, Log]]) -> AsyncIterator[tuple[LogSource, LogLine]]:
    """All lines, in the order of their times; of equal times, in the order of the logs. The lines of one log
    stay in their order. Servers wait while their logs are not needed."""
    async with AsyncExitStack() as stack:
        heads = [_Head(await stack.enter_async_context(aclosing(log))) for _, log in logs]
        firsts = await _all(head.line() for head in heads)
        waiting = [(line.at, number, line) for number, line in enumerate(firsts) if line is not None]
        heapq.heapify(waiting)
        while waiting:
            at, number, line = waiting[0]
            yield logs[number][0], line
            following = await heads[number].line()
            if following is None:
                heapq.heappop(waiting)
            else:  # a clock that was set back must not change the order within a log
                heapq.heapreplace(waiting, (max(at, following.at), number, following))


async def _all(lines: Iterable[Awaitable[LogLine | None]]) -> list[LogLine | None]:
    """The results of all; an error is raised when all have ended, as a log that is read cannot be closed."""
    found = await asyncio.gather(*lines, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return [each for each in found if not isinstance(each, BaseException)]
