"""The HTTP transport to one API server: sends requests, returns responses and streams.

All other modules use the `Transport` protocol, so that a fence (`grove.kube.leader.leadership`) or faults
(`grove.kube.testing.faults`) can be put in between. The transport returns every HTTP reply unchanged, also
one with an error code. It raises only if there is no reply: ConnectError if the request was not sent,
LostReply if the server may have received it.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import aiohttp
from aiohttp import ClientTimeout
from msgspec import Struct
from yarl import URL

from grove import timing
from grove.kube.auth import tls
from grove.kube.auth.config import Config
from grove.kube.auth.credentials import Certificate, Credential
from grove.kube.client.connect_errors import connect_failure_reason, one_line, root_cause
from grove.kube.client.http1 import ConnectionFailed, ConnectionPool
from grove.kube.client.http_reply import BadReply
from grove.kube.errors import ConfigError, ConnectError, LostReply, NoAnswer

USER_AGENT = "grove"
# Inflating a list costs more than decoding it, so no compression is asked for.
_HEADERS = (("Accept", "application/json"), ("Accept-Encoding", "identity"), ("User-Agent", USER_AGENT))
_AIOHTTP_FAULTS = (aiohttp.ClientError, TimeoutError, OSError)
_REMEDY = ": check what answers at the server's address, and the proxies in front of it"
WRITES = frozenset({"create", "patch", "update", "delete", "deletecollection"})


class Request(Struct, frozen=True):
    """One request, with the verb, resource and name that metrics, retries and faults use."""

    method: str
    path: str
    verb: str
    resource: str = ""
    namespace: str = ""
    name: str = ""
    body: bytes | None = None
    content_type: str = "application/json"
    timeout: float = 30.0
    conditional: bool = False
    """A write that the server rejects if the object has changed meanwhile, so that it may arrive late."""

    @property
    def is_write(self) -> bool:
        """Whether it can change objects."""
        return self.verb in WRITES

    @property
    def identity(self) -> tuple[str, str, str]:
        """Resource, verb and name."""
        return self.resource, self.verb, self.name

    def __str__(self) -> str:
        place = "/".join(part for part in (self.namespace, self.name) if part)
        return " ".join(part for part in (self.verb, self.resource or self.path, place) if part)


class Response(Struct, frozen=True):
    """A whole reply, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(Protocol):
    """A reply whose body is read while it arrives, such as a watch."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """The pieces of the body, which end anywhere. Raises LostReply when the connection breaks."""
        ...


class Transport(Protocol):
    """Sends requests to one API server."""

    async def send(self, request: Request) -> Response:
        """The whole reply. Raises ConnectError (not sent) or LostReply (it may have taken effect)."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """A reply that is read piece by piece; `request.timeout` limits the silence between pieces."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class HttpTransport:
    """Requests over pooled keep-alive connections, with credentials that may rotate."""

    def __init__(self, config: Config, *, connect_timeout: float = timing.CONNECT_TIMEOUT) -> None:
        self._config = config
        self._connect_timeout = connect_timeout
        self._limits: dict[float, ClientTimeout] = {}
        self._base = URL(config.server)
        self._prefix = config.server
        self._root = self._base.raw_path.rstrip("/")
        self._session: aiohttp.ClientSession | None = None
        self._tls_inputs: tuple[bytes | None, Certificate | None] | None = None
        self._ssl: ssl.SSLContext | None = None
        self._connections = ConnectionPool(self._base.host or "", self._base.port or 443)
        self._head = _common_head(self._base, config)

    async def send(self, request: Request) -> Response:
        """The whole reply; after a 401 the request is repeated once if there are newer credentials."""
        credential = await self._config.credentials.current()
        response = await self._send(request, credential)
        if response.status == 401:
            self._config.credentials.invalidate()
            renewed = await self._config.credentials.current()
            if renewed != credential:
                return await self._send(request, renewed)
        return response

    async def _send(self, request: Request, credential: Credential) -> Response:
        if self._config.proxy is not None:
            return await self._send_by_proxy(request, credential)
        tls_context = self._tls_context(credential.certificate)
        message = self._message(request, credential)
        limits = {"connect": self._connect_timeout, "total": request.timeout}
        try:
            reply = await self._connections.send(message, tls_context, self._config.server_name, **limits)
        except ConnectionFailed as problem:
            raise self._connect_error(problem.__cause__) from problem
        except (OSError, BadReply) as problem:
            raise _reply_lost(request, problem) from problem
        return Response(reply.status, reply.headers, reply.body)

    async def _send_by_proxy(self, request: Request, credential: Credential) -> Response:
        try:
            async with self._open(request, credential, self._limit(request.timeout)) as reply:
                return Response(reply.status, reply.headers, await _whole(reply))
        except (*_AIOHTTP_FAULTS, BadReply) as problem:
            raise self._failure(request, problem) from problem

    def _message(self, request: Request, credential: Credential) -> bytes:
        body = request.body or b""
        lines = [f"{request.method} {self._root}{request.path} HTTP/1.1", self._head]
        if credential.authorization:
            lines.append(f"Authorization: {credential.authorization}")
        if request.body is not None:
            lines.append(f"Content-Type: {request.content_type}")
        if body or request.method != "GET":
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join((*lines, "", "")).encode() + body

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """A reply that is read piece by piece."""
        credential = await self._config.credentials.current()
        timeout = ClientTimeout(connect=self._connect_timeout, sock_read=request.timeout)
        try:
            reply = await self._open(request, credential, timeout)
        except _AIOHTTP_FAULTS as problem:
            raise self._failure(request, problem) from problem
        try:
            if reply.status == 401:
                self._config.credentials.invalidate()
            yield _HttpStream(reply, request)
        finally:
            # A TLS close_notify would need iterations of the loop, which a cancelled caller may not have.
            if reply.connection is not None and reply.connection.transport is not None:
                reply.connection.transport.abort()
            reply.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()
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
        self, request: Request, credential: Credential, timeout: ClientTimeout
    ) -> aiohttp.client._RequestContextManager:
        headers = [("Content-Type", request.content_type)] if request.body is not None else []
        if credential.authorization:
            headers.append(("Authorization", credential.authorization))
        tls_context = self._tls_context(credential.certificate)
        return self._current_session().request(
            request.method,
            URL(self._prefix + request.path, encoded=True),
            data=request.body,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            ssl=tls_context or True,
            server_hostname=self._config.server_name,
            proxy=self._config.proxy,
        )

    def _tls_context(self, certificate: Certificate | None) -> ssl.SSLContext | None:
        """The TLS context; a new one, hence new connections, if the authority or the certificate changed."""
        authority = self._config.authority.read() if self._config.authority else None
        if self._tls_inputs != (authority, certificate):
            if self._base.scheme == "https":
                self._ssl = tls.context(authority, certificate, insecure=self._config.insecure)
            self._tls_inputs = (authority, certificate)
        return self._ssl

    def _current_session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = self._new_session()
        return self._session

    def _new_session(self) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=timing.CONNECTION_IDLE_TIMEOUT),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=[*_HEADERS, *self._config.headers],
            skip_auto_headers=("Content-Type",),
            auto_decompress=False,
        )
        # aiohttp repeats PUT and DELETE by itself when a kept connection turns out to be dead. The first
        # request may have taken effect, and then the repetition is answered with a misleading 404 or 409.
        session._retry_connection = False
        return session

    def _failure(self, request: Request, problem: BaseException) -> ConnectError | LostReply:
        if isinstance(problem, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError):
            return self._connect_error(root_cause(problem))
        return _reply_lost(request, problem)

    def _connect_error(self, problem: BaseException | None) -> ConnectError:
        return ConnectError(f"{self._config.server} {connect_failure_reason(problem)}")


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
            except _AIOHTTP_FAULTS as problem:
                raise _reply_lost(self._request, problem) from problem
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


def _reply_lost(request: Request, problem: BaseException) -> LostReply:
    outcome = "; it may have taken effect" if request.is_write else ""
    if isinstance(problem, TimeoutError):
        return NoAnswer(f"{request}: no answer in {request.timeout:g} s{outcome}", request.timeout)
    if isinstance(problem, BadReply):
        return LostReply(f"{request}: the reply is not HTTP/1.1 ({one_line(problem)}){outcome}{_REMEDY}")
    return LostReply(f"{request}: connection lost ({one_line(problem)}){outcome}")


def _common_head(base: URL, config: Config) -> str:
    """The headers that all requests share."""
    headers = [("Host", base.host_port_subcomponent or ""), *_HEADERS, *config.headers]
    for name, value in headers:
        if not value.isprintable():
            raise ConfigError(f"{name} {value!r} is not a valid header: correct the kubeconfig")
    return "\r\n".join(f"{name}: {value}" for name, value in headers)
