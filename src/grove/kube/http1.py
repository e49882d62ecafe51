"""HTTP/1.1 as far as requests to an API server need it: one at a time on a kept connection, whole replies.

A client for all purposes took 0.3 ms of CPU for each request, this takes a third of it, and an operator that
brings up 1000 pods sends 3,500. What is rare or goes on (proxies, watches) is left to that client.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from grove.kube.http_reply import BadReply, Reading, Reply

_KEPT = 60.0  # seconds for which a connection that nobody needs is kept


class Unreached(Exception):
    """There is no connection, so that nothing was sent; why is its cause."""


class _Connection(asyncio.Protocol):
    def __init__(self, join: Callable[[_Connection], None], leave: Callable[[_Connection], None]) -> None:
        self._join, self._leave = join, leave
        self._reading: Reading | None = None
        self._answer: asyncio.Future[Reply] | None = None
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._join(self)

    async def ask(self, message: bytes) -> Reply:
        self._answer = asyncio.get_running_loop().create_future()
        self._reading = Reading()
        self.transport.write(message)
        try:
            return await self._answer
        finally:
            self._answer = self._reading = None

    def data_received(self, data: bytes) -> None:
        if self._reading is None:
            self.transport.abort()  # no request is waiting for this: the connection is not to be trusted
            return
        try:
            reply = self._reading.feed(data)
        except BadReply as problem:
            self._reading = None
            self._fail(problem)
            self.transport.abort()
            return
        if reply is not None:
            self._reading = None
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave(self)
        reply = self._reading.end() if self._reading is not None and exc is None else None
        if reply is not None and self._answer is not None and not self._answer.done():
            self._answer.set_result(reply)
        self._fail(exc or ConnectionError("the server closed the connection"))

    def _fail(self, problem: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(problem)


class Connections:
    """Connections to one server, as many as there are requests at once, kept for those that come."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._idle: list[_Connection] = []  # the one that was used last is the next
        self._open: set[_Connection] = set()
        self._trust: ssl.SSLContext | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed: asyncio.Future[None] | None = None

    async def send(
        self, message: bytes, trust: ssl.SSLContext | None, name: str | None, *, connect: float, total: float
    ) -> Reply:
        """Send a request and wait for its reply, with limits in seconds. Raises Unreached, or what cut it."""
        if trust is not self._trust:  # nobody is to be met on connections of another trust
            self._trust = trust
            while self._idle:
                self._idle.pop().transport.close()
        deadline = asyncio.get_running_loop().time() + total
        connection = self._kept() or await self._connect(trust, name, min(connect, total))
        try:
            async with asyncio.timeout_at(deadline):
                reply = await connection.ask(message)
        except BaseException:
            connection.transport.abort()  # its reply may still come, and would be taken for the next one
            raise
        if reply.keeps and connection in self._open and trust is self._trust:
            self._keep(connection)
        else:
            connection.transport.close()
        return reply

    async def close(self) -> None:
        """Let go of all connections."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        self._idle.clear()
        for connection in list(self._open):
            connection.transport.abort()
        if self._open:
            self._closed = asyncio.get_running_loop().create_future()
            await self._closed

    async def _connect(self, trust: ssl.SSLContext | None, name: str | None, within: float) -> _Connection:
        try:
            async with asyncio.timeout(within):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self._open.add, self._leave),
                    self._host,
                    self._port,
                    ssl=trust,
                    server_hostname=(name or self._host) if trust is not None else None,
                )
        except OSError as problem:  # of TLS, and that it took too long, too
            raise Unreached from problem
        if connection not in self._open:
            raise Unreached from ConnectionError("the server closed the connection at once")
        return connection

    def _kept(self) -> _Connection | None:
        """One that is good as far as we know: a loop that stood still has neither swept nor been told of
        connections that the server closed."""
        longest_ago = asyncio.get_running_loop().time() - _KEPT
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since > longest_ago and not connection.transport.is_closing():
                return connection
            connection.transport.close()
        return None

    def _keep(self, connection: _Connection) -> None:
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweeping is None:
            self._sweeping = loop.call_later(_KEPT, self._sweep)

    def _sweep(self) -> None:
        """Let go of connections that nobody has needed for long; the first are those used longest ago."""
        self._sweeping, loop = None, asyncio.get_running_loop()
        while self._idle and self._idle[0].idle_since <= loop.time() - _KEPT:
            self._idle.pop(0).transport.close()
        if self._idle:
            self._sweeping = loop.call_at(self._idle[0].idle_since + _KEPT, self._sweep)

    def _leave(self, connection: _Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if self._closed is not None and not self._open and not self._closed.done():
            self._closed.set_result(None)
