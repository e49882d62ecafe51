"""Requests through a proxy, with aiohttp. It is imported only where a proxy is configured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import ClientTimeout
from yarl import URL

from grove import timing
from grove.kube.auth.credentials import Credential
from grove.kube.client.connect_errors import one_line
from grove.kube.client.http1 import ConnectionFailed, Server
from grove.kube.client.http_reply import BadReply, HttpReply
from grove.kube.client.transport import Request

_NOT_SENT = (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError)


class ProxySession:
    """Connections to one server through a proxy. Raises what `http1` and `http_stream` raise."""

    def __init__(
        self, address: str, proxy: str, headers: tuple[tuple[str, str], ...], connect_timeout: float
    ) -> None:
        self._address, self._proxy, self._headers = address, proxy, headers
        self._connect_timeout = connect_timeout
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request, credential: Credential, server: Server) -> HttpReply:
        """The whole reply."""
        connect = min(self._connect_timeout, request.timeout)
        limits = ClientTimeout(total=request.timeout, connect=connect)
        async with _translated_errors(), await self._request(request, credential, server, limits) as reply:
            return HttpReply(reply.status, reply.headers, await _whole(reply), keep_alive=False)

    async def open(
        self, request: Request, credential: Credential, server: Server
    ) -> tuple[ProxiedStream, int, Mapping[str, str]]:
        """A reply that is read piece by piece, with its status and headers."""
        limits = ClientTimeout(connect=self._connect_timeout, sock_read=request.timeout)
        async with _translated_errors():
            reply = await self._request(request, credential, server, limits)
        return ProxiedStream(reply), reply.status, reply.headers

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _request(
        self, request: Request, credential: Credential, server: Server, limits: ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = [("Content-Type", request.content_type)] if request.body is not None else []
        if credential.authorization:
            headers.append(("Authorization", credential.authorization))
        return await self._current_session().request(
            request.method,
            URL(self._address + request.path, encoded=True),
            data=request.body,
            headers=headers,
            timeout=limits,
            allow_redirects=False,
            ssl=server.tls_context or True,
            server_hostname=server.name,
            proxy=self._proxy,
        )

    def _current_session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=timing.CONNECTION_IDLE_TIMEOUT),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                skip_auto_headers=("Content-Type",),
                auto_decompress=False,
            )
            # aiohttp repeats PUT and DELETE by itself when a kept connection turns out to be dead. The first
            # request may have taken effect, and then the repetition is answered with a misleading 404 or 409.
            self._session._retry_connection = False
        return self._session


class ProxiedStream:
    """A reply that is read while it arrives."""

    def __init__(self, reply: aiohttp.ClientResponse) -> None:
        self._reply = reply

    async def read(self) -> bytes:
        """What has arrived since the last call; empty at the end of the reply."""
        content = self._reply.content
        while not content.at_eof():
            async with _translated_errors():
                if chunk := await content.readany():
                    return chunk
        return b""

    def close(self) -> None:
        """Close the connection, without a TLS close_notify: that would need iterations of the loop, which a
        cancelled caller may not have."""
        if self._reply.connection is not None and self._reply.connection.transport is not None:
            self._reply.connection.transport.abort()
        self._reply.close()


async def _whole(reply: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    async for piece in reply.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > timing.MAX_REPLY_BODY:
            raise BadReply(f"its body has more than {timing.MAX_REPLY_BODY} bytes")
    return b"".join(pieces)


@asynccontextmanager
async def _translated_errors() -> AsyncIterator[None]:
    """Errors of aiohttp as ConnectionFailed, if nothing was sent, or as ConnectionError."""
    try:
        yield
    except _NOT_SENT as problem:
        raise ConnectionFailed from _root_cause(problem)
    except aiohttp.ClientError as problem:
        if isinstance(problem, OSError):
            raise
        raise ConnectionError(one_line(problem)) from problem


def _root_cause(problem: BaseException) -> BaseException:
    """The error that an aiohttp error wraps."""
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        return problem.certificate_error
    return problem.os_error if isinstance(problem, aiohttp.ClientConnectorError) else problem
