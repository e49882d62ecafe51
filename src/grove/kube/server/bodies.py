"""Reads the bodies of requests: how many bytes of them are in memory at once, and in which time they arrive.

Above the limit, the body of another request is dropped and not the one that arrives: the oldest one that is
still incomplete, of the peer with the most bytes. So a peer that sends parts of many bodies harms itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from grove import timing


class BodyTooLarge(Exception):
    """The body has more bytes than any request."""


class TooManyBytes(Exception):
    """The bodies that are in memory leave no room."""


class Body:
    """A body in memory: what has arrived of it."""

    def __init__(self, peer: str, timeout: asyncio.Timeout) -> None:
        self.peer, self._timeout = peer, timeout
        self.content = bytearray()
        self.dropped = False

    def drop(self) -> None:
        """End the request: its body is not kept in memory any more."""
        self.dropped = True
        self.content = bytearray()
        self._set_deadline(asyncio.get_running_loop().time())

    def keep(self) -> None:
        """Let the request end whenever it is answered."""
        self._set_deadline(None)

    def _set_deadline(self, when: float | None) -> None:
        if not self._timeout.expired():  # else the request ends already
            self._timeout.reschedule(when)


class Bodies:
    """All bodies in memory."""

    def __init__(self) -> None:
        self._pending: dict[Body, None] = {}
        self._size = 0

    @asynccontextmanager
    async def reading(self, request: web.Request) -> AsyncIterator[Body]:
        """Read the body of a request; it counts until the block ends. It and the block have the time of a
        body. Raises BodyTooLarge, TooManyBytes, TimeoutError, or what the connection raises."""
        if (request.content_length or 0) > timing.MAX_REVIEW:
            raise BodyTooLarge
        body: Body | None = None
        try:
            async with asyncio.timeout(timing.REVIEW_BODY_TIMEOUT) as timeout:
                body = Body(request.remote or "", timeout)
                self._pending[body] = None
                while chunk := await request.content.readany():
                    self._add(body, chunk)
                yield body
        except TimeoutError:
            if body is not None and body.dropped:
                raise TooManyBytes from None
            raise
        finally:
            if body is not None:
                self._remove(body)

    def begin_answer(self, body: Body) -> None:
        """The body had its turn: it is not dropped any more, and has no time limit."""
        self._pending.pop(body, None)
        body.keep()

    def _add(self, body: Body, chunk: bytes) -> None:
        if len(body.content) + len(chunk) > timing.MAX_REVIEW:
            raise BodyTooLarge
        while self._size + len(chunk) > timing.REVIEW_BYTES:
            victim = self._victim()
            if victim is None or victim is body:
                raise TooManyBytes
            self._size -= len(victim.content)
            del self._pending[victim]
            victim.drop()
        body.content += chunk
        self._size += len(chunk)

    def _victim(self) -> Body | None:
        sizes: dict[str, int] = {}
        for each in self._pending:
            sizes[each.peer] = sizes.get(each.peer, 0) + len(each.content)
        if not sizes:
            return None
        most = max(sizes, key=sizes.__getitem__)
        return next(each for each in self._pending if each.peer == most and each.content)

    def _remove(self, body: Body) -> None:
        self._pending.pop(body, None)
        self._size -= len(body.content)
