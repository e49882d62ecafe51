"""A reply that is read while it arrives, such as a watch, on a connection of its own (see `http1`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from grove import timing
from grove.kube.client.http1 import Server, connect
from grove.kube.client.http_reply import BadReply, ReplyParser


class HttpStream(asyncio.Protocol):
    """One request and its reply. `silence`: seconds without any data after which the connection counts as
    broken."""

    def __init__(self, silence: float) -> None:
        self._loop, self._silence = asyncio.get_running_loop(), silence
        self._parser = ReplyParser(endless=True)
        self._head: tuple[int, Mapping[str, str]] | None = None
        self._pieces: list[bytes] = []
        self._size = 0  # bytes that have arrived and are not read yet
        self._paused = self._ended = False
        self._problem: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._heard_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._timer = self._loop.call_later(self._silence, self._check_silence)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        if self._ended:
            return
        try:
            reply = self._parser.feed(data)
        except BadReply as problem:
            self._end(problem)
            return
        if self._head is None:
            self._head = (reply.status, reply.headers) if reply is not None else self._parser.head
        pieces = [reply.body] if reply is not None else self._parser.take_body()
        self._pieces += filter(None, pieces)
        self._size += sum(map(len, pieces))
        if reply is not None:
            self._end(None)
        elif self._size > timing.STREAM_BUFFER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        complete = exc is None and self._parser.end() is not None
        self._end(None if complete else exc or ConnectionError("the server closed the connection"))

    async def request(self, message: bytes) -> tuple[int, Mapping[str, str]]:
        """Send the request. Returns status and headers of its reply. Raises BadReply, or the error that broke
        the connection."""
        assert self._transport is not None
        self._transport.write(message)
        while self._head is None:
            if self._problem is not None:
                raise self._problem
            await self._wait()
        return self._head

    async def read(self) -> bytes:
        """What has arrived since the last call; empty at the end of the reply. Raises as `request` does."""
        while not self._pieces:
            if self._problem is not None:
                raise self._problem
            if self._ended:
                return b""
            await self._wait()
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    def close(self) -> None:
        """Close the connection, without a TLS close_notify: that would need iterations of the loop, which a
        cancelled caller may not have."""
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end(self, problem: Exception | None) -> None:
        if not self._ended:
            self._ended, self._problem = True, problem
            self._stop_timer()
            self._wake()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check_silence(self) -> None:
        """End a silent reply. One timer for all pieces: most arrive long before it."""
        left = self._heard_at + self._silence - self._loop.time()
        if left <= 0 and not self._paused:
            self._end(TimeoutError())
        else:
            self._timer = self._loop.call_later(left if left > 0 else self._silence, self._check_silence)


async def open_stream(server: Server, *, connect_timeout: float, silence: float) -> HttpStream:
    """A connection for one request. Raises ConnectionFailed."""
    return await connect(server, lambda: HttpStream(silence), connect_timeout)
