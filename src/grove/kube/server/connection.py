"""One connection of a server: the time in which the head of a request must arrive and a response be read.

It stands between the transport and aiohttp's protocol, which bounds only how long a connection is idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from grove import timing
from grove.kube.server.connections import Connections
from grove.kube.server.refusals import Refusal, Refusals


class Connection(asyncio.Protocol):
    """Passes everything to aiohttp, and closes the connection when a time is over."""

    def __init__(
        self,
        handler: web.RequestHandler,
        peer: str,
        connections: Connections,
        refusals: Refusals,
        closed: Callable[[Connection], None],
    ) -> None:
        self.handler, self.peer, self._closed = handler, peer, closed
        self.handshake: asyncio.Task[None] | None = None
        self._connections, self._refusals = connections, refusals
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._in_request = self._in_head = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is done. aiohttp limits the time until the first byte, as for any idle connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """The first byte outside of a request begins the next one."""
        if not self._in_request and not self._in_head:
            self._in_head = True
            self._start_timer(timing.REQUEST_HEAD_TIMEOUT, self._on_late_head)
        self.handler.data_received(data)

    def eof_received(self) -> bool | None:
        """The peer sends nothing more."""
        self.handler.eof_received()
        return None

    def pause_writing(self) -> None:
        """The peer reads slowly."""
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        """The peer has read."""
        self.handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by any side."""
        self._stop_timer()
        self._closed(self)
        self.handler.connection_lost(exc)

    def evict(self) -> None:
        """Close the connection at once, to make room for another one."""
        self._refusals.record(Refusal.CONNECTIONS, "closed for a new connection: too many", self.peer)
        if self._transport is not None:
            self._transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    def begin_request(self, request: web.BaseRequest) -> None:
        """The head of a request has arrived."""
        self._stop_timer()
        self._in_request, self._in_head = True, False
        request[_KEY] = self

    def end_request(self) -> None:
        """The handler has returned the response, which is now sent."""
        self._in_request = False
        self._start_timer(timing.RESPONSE_TIMEOUT, self._on_unread_response)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While the body runs, the connection is not closed for another one."""
        self._connections.begin_answer(self)
        try:
            yield
        finally:
            self._connections.end_answer(self)

    def _start_timer(self, seconds: float, callback: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, callback)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_late_head(self) -> None:
        self._timer = None
        why = f"the head of a request did not arrive within {timing.REQUEST_HEAD_TIMEOUT:g} s"
        self._refusals.record(Refusal.HEAD_TIMEOUT, why, self.peer)
        self.abort()

    def _on_unread_response(self) -> None:
        self._timer = None
        if self._transport is not None and self._transport.get_write_buffer_size():
            why = f"the response was not read within {timing.RESPONSE_TIMEOUT:g} s"
            self._refusals.record(Refusal.RESPONSE_TIMEOUT, why, self.peer)
            self.abort()

    def abort(self) -> None:
        """Close an established connection at once, without waiting for the peer."""
        if self._transport is not None:
            self._transport.abort()


_KEY = web.RequestKey("connection", Connection)


@contextmanager
def answering(request: web.BaseRequest) -> Iterator[None]:
    """While the body runs, the connection of the request is not closed for another one."""
    connection = request.get(_KEY)
    if connection is None:
        yield
        return
    with connection.answering():
        yield
