"""Accepts the connections of one server, within its limits, and gives them to an application of aiohttp.

Connections are counted from the moment they are accepted: a TLS handshake that does not end costs as much
memory as any other connection.
"""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

from grove import timing
from grove.kube.server.connection import Connection
from grove.kube.server.connections import ConnectionLimits, Connections
from grove.kube.server.refusals import Refusal, Refusals, RequestLogger
from grove.kube.server.request_handler import RequestHandler

_NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def bounded_runner(
    application: web.Application,
    refusals: Refusals,
    *,
    keepalive: float = timing.SERVER_KEEPALIVE,
    cancels: bool = False,
) -> web.AppRunner:
    """A runner that neither decompresses bodies nor logs what peers do wrong with tracebacks. `cancels`: the
    handler of a request is cancelled when its peer closes the connection."""
    return web.AppRunner(
        application,
        access_log=None,
        logger=RequestLogger(refusals),
        shutdown_timeout=timing.SERVER_STOP_TIMEOUT,
        keepalive_timeout=keepalive,
        auto_decompress=False,
        lingering_time=timing.REFUSED_BODY_READ,
        handler_cancellation=cancels,
    )


def raise_file_limit() -> None:
    """Let this process open as many files as it may: some systems allow 1,024 at first, fewer than the
    connections and watches of an operator."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket; without a host to all addresses, of both families where the machine has both."""
    if not host and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as problem:
            if problem.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


@asynccontextmanager
async def listening(
    listener: socket.socket,
    runner: web.AppRunner,
    refusals: Refusals,
    limits: ConnectionLimits,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[None]:
    """Serve the application of the runner while the body runs. The caller closes the socket."""
    await runner.setup()
    server = _Listener(runner, refusals, limits, tls)
    try:
        listener.setblocking(False)
        # Bounds the memory of a connection: what was received at once stays allocated while it is open.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, timing.RECEIVE_BUFFER)
        accepting = asyncio.create_task(server.accept(listener), name="accept")
        try:
            yield
        finally:
            accepting.cancel()
            await asyncio.wait([accepting])
            await server.stop_handshakes()
    finally:
        await runner.cleanup()
        await server.abort_connections()


class _Listener:
    def __init__(
        self,
        runner: web.AppRunner,
        refusals: Refusals,
        limits: ConnectionLimits,
        tls: ssl.SSLContext | None,
    ) -> None:
        assert runner.server is not None
        self._server, self._refusals = runner.server, refusals
        self._connections = Connections(limits)
        self._by_handler: dict[web.RequestHandler, Connection] = {}
        self._handshakes: set[asyncio.Task[None]] = set()
        self._all_closed: asyncio.Future[None] | None = None
        self._options: dict[str, Any] = (
            {
                "ssl": tls,
                "ssl_handshake_timeout": timing.HANDSHAKE_TIMEOUT,
                "ssl_shutdown_timeout": timing.TLS_SHUTDOWN_TIMEOUT,
            }
            if tls is not None
            else {}
        )
        self._answer = self._server.request_handler
        self._server.request_handler = self._handle

    async def accept(self, listener: socket.socket) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connected, address = await loop.sock_accept(listener)
            except OSError as problem:
                if problem.errno in _NO_RESOURCES:
                    self._refusals.record(Refusal.CONNECTIONS, problem.strerror or str(problem))
                    await asyncio.sleep(timing.ACCEPT_RETRY)
                continue
            self._add(connected, str(address[0]))

    def _add(self, connected: socket.socket, peer: str) -> None:
        connection = Connection(
            RequestHandler.of(self._server), peer, self._connections, self._refusals, self._remove
        )
        if not self._connections.add(connection):
            self._refusals.record(Refusal.CONNECTIONS, "not accepted: too many in work", peer)
            connected.close()
            return
        task = asyncio.create_task(self._establish(connected, connection))
        connection.handshake = task
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    async def _establish(self, connected: socket.socket, connection: Connection) -> None:
        """Do the TLS handshake, if there is one. Its failure is a refusal."""
        loop, established = asyncio.get_running_loop(), False
        try:
            self._by_handler[connection.handler] = connection
            await loop.connect_accepted_socket(lambda: connection, connected, **self._options)
            established = True
        except (OSError, EOFError) as problem:  # ssl.SSLError is an OSError
            reason = getattr(problem, "reason", None) or problem.args[-1:] or (type(problem).__name__,)
            why = reason if isinstance(reason, str) else str(reason[0])
            self._refusals.record(Refusal.HANDSHAKE, why, connection.peer)
        finally:
            if not established:
                self._remove(connection)

    def _remove(self, connection: Connection) -> None:
        self._connections.remove(connection)
        self._by_handler.pop(connection.handler, None)
        if self._all_closed is not None and not self._by_handler and not self._all_closed.done():
            self._all_closed.set_result(None)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = self._by_handler.get(request.protocol)
        if connection is None:
            return await self._answer(request)
        connection.begin_request(request)
        try:
            return await self._answer(request)
        finally:
            connection.end_request()

    async def stop_handshakes(self) -> None:
        """Cancel what is not connected yet, before the runner closes the rest."""
        for task in tuple(self._handshakes):
            task.cancel()
        if self._handshakes:
            await asyncio.wait(self._handshakes)

    async def abort_connections(self) -> None:
        """Close what is still open after the runner has closed its connections: with TLS they stay open until
        their peers confirm it, and a server that has stopped waits for no peer."""
        for connection in tuple(self._by_handler.values()):
            connection.abort()
        if self._by_handler:
            self._all_closed = asyncio.get_running_loop().create_future()
            await self._all_closed
