"""What one open page receives: deltas, heartbeats, and a reset when its rights change or its session ends.

Rights are reviewed at each heartbeat. While the API server does not answer such a review, the page receives
heartbeats only, which say so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from enum import Enum
from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

from grove import timing
from grove.dashboard.access.caller import Access, Caller, Presented
from grove.dashboard.board import Board
from grove.dashboard.model import Connection, Delta, Heartbeat
from grove.dashboard.pages.errors import PageError
from grove.dashboard.server.stream.event_stream import EventStream, PeerGone
from grove.logger import get_logger

log = get_logger("grove.dashboard")
_UNKNOWN = "your rights cannot be reviewed: the API server does not answer"


class _Rights(Enum):
    SAME = "same"
    CHANGED = "changed"
    UNKNOWN = "unknown"


class LivePage:
    """One stream. It ends when the server stops, after a reset, or with PeerGone."""

    def __init__(
        self, board: Board, access: Access, presented: Presented, caller: Caller, events: EventStream
    ) -> None:
        self._board, self._access, self._events = board, access, events
        self._presented, self._caller = presented, caller
        self._unknown_since = ""

    async def run(self, since: str, stopping: asyncio.Event) -> None:
        """Send until the stream ends."""
        deltas = self._board.deltas(self._caller.rights, since)
        stop = asyncio.ensure_future(stopping.wait())
        ended = asyncio.ensure_future(self._access.ended(self._presented).wait())
        pending = _Pending(deltas)
        try:
            if await self._follow(pending, stop, ended):
                await self._events.send("reset", {})
        except PeerGone:
            raise
        except Exception as bug:  # the head is sent: no error can be answered, and the page comes back
            log.exception("stream failed", key="dashboard", action="end the stream", reason=str(bug))
        finally:
            stop.cancel()
            ended.cancel()
            await pending.close()

    async def _follow(self, pending: _Pending, stop: asyncio.Future[Any], ended: asyncio.Future[Any]) -> bool:
        """Whether the page must read the picture again; else the server stops."""
        loop, next_beat, rights = asyncio.get_running_loop(), 0.0, _Rights.SAME
        while True:
            if loop.time() >= next_beat:
                next_beat = loop.time() + timing.HEARTBEAT_INTERVAL
                rights = await self._review()
                await self._events.send("heartbeat", self._heartbeat(rights))
            if rights is _Rights.CHANGED or ended.done():
                return True
            shown = rights is _Rights.SAME
            awaited: list[asyncio.Future[Any]] = [stop, ended, *([pending.future] if shown else ())]
            left = max(0.0, next_beat - loop.time())
            await asyncio.wait(awaited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                return False
            if shown and pending.future.done():
                delta = pending.take()
                if delta is None:
                    return True
                await self._events.send("delta", delta, delta.version)

    def _heartbeat(self, rights: _Rights) -> Heartbeat:
        """What the board says, and that nothing is sent while rights are not known."""
        found = self._board.heartbeat(self._caller.rights)
        if rights is not _Rights.UNKNOWN:
            self._unknown_since = ""
            return found
        self._unknown_since = self._unknown_since or found.now
        connection = Connection(connected=False, problem=_UNKNOWN, since=self._unknown_since)
        return replace(found, connection=connection)

    async def _review(self) -> _Rights:
        try:
            caller = await self._access.caller(self._presented)
        except PageError as problem:
            return _Rights.CHANGED if problem.status is HTTPStatus.UNAUTHORIZED else _Rights.UNKNOWN
        return _Rights.SAME if caller.rights == self._caller.rights else _Rights.CHANGED


class _Pending:
    """The next delta, which is waited for. A source that ends has no more of them."""

    def __init__(self, deltas: AsyncIterator[Delta | None]) -> None:
        self._deltas = deltas
        self.future: asyncio.Future[Delta | None] = asyncio.ensure_future(self._next())

    def take(self) -> Delta | None:
        """The delta that has arrived; the next one is waited for."""
        delta = self.future.result()
        if delta is not None:
            self.future = asyncio.ensure_future(self._next())
        return delta

    async def close(self) -> None:
        """Stop to wait, and close the source."""
        self.future.cancel()
        await asyncio.wait([self.future])
        if isinstance(self._deltas, AsyncGenerator):
            await self._deltas.aclose()

    async def _next(self) -> Delta | None:
        try:
            return await anext(self._deltas)
        except StopAsyncIteration:
            await asyncio.Event().wait()  # until it is cancelled
            raise
