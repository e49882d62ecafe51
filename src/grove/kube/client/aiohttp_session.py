"""Requests with aiohttp: watches, and everything behind a proxy.

The transport imports this module when it needs it first: aiohttp takes long to import, and commands that only
read lists do without it.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import ClientTimeout
from yarl import URL

from grove import timing
from grove.kube.auth.config import Config
from grove.kube.auth.credentials import Credential
from grove.kube.client.http_reply import BadReply
from grove.kube.client.transport import HEADERS, Request, Response, Stream, connect_error, reply_lost
from grove.kube.errors import ConnectError, LostReply

_FAULTS = (aiohttp.ClientError, TimeoutError, OSError)


class AiohttpSession:
    """Connections of aiohttp to one API server. Each call is given the credential and the TLS context."""

    def __init__(self, config: Config, connect_timeout: float) -> None:
        self._config = config
        self._connect_timeout = connect_timeout
        self._limits: dict[float, ClientTimeout] = {}
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request, credential: Credential, tls: ssl.SSLContext | None) -> Response:
        """The whole reply."""
        try:
            async with self._open(request, credential, tls, self._limit(request.timeout)) as reply:
                return Response(reply.status, reply.headers, await _whole(reply))
        except (*_FAULTS, BadReply) as problem:
            raise self._failure(request, problem) from problem

    @asynccontextmanager
    async def stream(
        self, request: Request, credential: Credential, tls: ssl.SSLContext | None
    ) -> AsyncIterator[Stream]:
        """A reply that is read piece by piece."""
        timeout = ClientTimeout(connect=self._connect_timeout, sock_read=request.timeout)
        try:
            reply = await self._open(request, credential, tls, timeout)
        except _FAULTS as problem:
            raise self._failure(request, problem) from problem
        try:
            yield _HttpStream(reply, request)
        finally:
            # A TLS close_notify would need iterations of the loop, which a cancelled caller may not have.
            if reply.connection is not None and reply.connection.transport is not None:
                reply.connection.transport.abort()
            reply.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _limit(self, seconds: float) -> ClientTimeout:
        """The timeouts of a request with a whole reply; there are few different ones, created once each."""
        known = self._limits.get(seconds)
        if known is None:
            known = ClientTimeout(total=seconds, connect=min(self._connect_timeout, seconds))
            self._limits[seconds] = known
        return known

    def _open(
        self, request: Request, credential: Credential, tls: ssl.SSLContext | None, timeout: ClientTimeout
    ) -> aiohttp.client._RequestContextManager:
        headers = [("Content-Type", request.content_type)] if request.body is not None else []
        if credential.authorization:
            headers.append(("Authorization", credential.authorization))
        return self._current_session().request(
            request.method,
            URL(self._config.server + request.path, encoded=True),
            data=request.body,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            ssl=tls or True,
            server_hostname=self._config.server_name,
            proxy=self._config.proxy,
        )

    def _current_session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = self._new_session()
        return self._session

    def _new_session(self) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=timing.CONNECTION_IDLE_TIMEOUT),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=[*HEADERS, *self._config.headers],
            skip_auto_headers=("Content-Type",),
            auto_decompress=False,
        )
        # aiohttp repeats PUT and DELETE by itself when a kept connection turns out to be dead. The first
        # request may have taken effect, and then the repetition is answered with a misleading 404 or 409.
        session._retry_connection = False
        return session

    def _failure(self, request: Request, problem: BaseException) -> ConnectError | LostReply:
        if isinstance(problem, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError):
            return connect_error(self._config, _root_cause(problem))
        return reply_lost(request, problem)


class _HttpStream:
    """aiohttp's reply as a Stream."""

    def __init__(self, reply: aiohttp.ClientResponse, request: Request) -> None:
        self._reply = reply
        self._request = request
        self.status = reply.status
        self.headers: Mapping[str, str] = reply.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """The pieces of the body as they arrive."""
        content = self._reply.content
        while not content.at_eof():
            try:
                chunk = await content.readany()
            except _FAULTS as problem:
                raise reply_lost(self._request, problem) from problem
            if chunk:
                yield chunk


async def _whole(reply: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    async for piece in reply.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > timing.MAX_REPLY_BODY:
            raise BadReply(f"its body has more than {timing.MAX_REPLY_BODY} bytes")
    return b"".join(pieces)


def _root_cause(problem: BaseException) -> BaseException:
    """The error that an aiohttp error wraps."""
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        return problem.certificate_error
    return problem.os_error if isinstance(problem, aiohttp.ClientConnectorError) else problem
