"""The one place where bytes leave this process: requests in, responses and streams out.

Everything above speaks to the `Transport` protocol, so that faults can be put in between
(`grove.kube.faults`) and nothing else has to know. The transport answers every HTTP reply as it is. It
raises only when there is no reply, and then says whether the request can have reached the server.
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

from grove.kube import tls
from grove.kube.config import Config
from grove.kube.credentials import Certificate, Credential
from grove.kube.errors import ConnectError, LostReply

USER_AGENT = "grove"
_AIOHTTP_FAULTS = (aiohttp.ClientError, TimeoutError, OSError)
WRITES = frozenset({"create", "patch", "update", "delete", "deletecollection"})


class Request(Struct, frozen=True):
    """One request, with the words (verb, resource, ...) that metrics, retries and faults go by."""

    method: str
    path: str
    verb: str
    resource: str = ""
    namespace: str = ""
    name: str = ""
    body: bytes | None = None
    content_type: str = "application/json"
    timeout: float = 30.0

    @property
    def is_write(self) -> bool:
        """Whether it can change anything."""
        return self.verb in WRITES

    def __str__(self) -> str:
        place = "/".join(part for part in (self.namespace, self.name) if part)
        return " ".join(part for part in (self.verb, self.resource or self.path, place) if part)


class Response(Struct, frozen=True):
    """A whole reply, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream(Protocol):
    """A reply whose body goes on, as a watch does."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, cut anywhere. Raises LostReply when it is torn off."""
        ...


class Transport(Protocol):
    """Sends requests to one API server."""

    async def send(self, request: Request) -> Response:
        """The whole reply. Raises ConnectError (not sent) or LostReply (perhaps done)."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """A reply read piece by piece; `request.timeout` bounds the silence between pieces."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


class HttpTransport:
    """Requests over pooled keep-alive connections, with credentials that may rotate."""

    def __init__(self, config: Config, *, connect_timeout: float = 10.0) -> None:
        self._config = config
        self._connect_timeout = connect_timeout
        self._limits: dict[float, ClientTimeout] = {}
        self._base = URL(config.server)
        self._prefix = config.server
        self._session: aiohttp.ClientSession | None = None
        self._shown: tuple[bytes | None, Certificate | None] = (None, None)
        self._ssl: ssl.SSLContext | bool = True

    async def send(self, request: Request) -> Response:
        """The whole reply; a 401 is asked again once, with credentials fetched anew."""
        credential = await self._config.credentials.current()
        response = await self._send(request, credential)
        if response.status == 401:
            self._config.credentials.doubt()
            renewed = await self._config.credentials.current()
            if renewed != credential:
                return await self._send(request, renewed)
        return response

    async def _send(self, request: Request, credential: Credential) -> Response:
        try:
            async with self._open(request, credential, self._limit(request.timeout)) as reply:
                return Response(reply.status, reply.headers, await reply.read())
        except _AIOHTTP_FAULTS as problem:
            raise self._failure(request, problem) from problem

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """A reply read piece by piece."""
        credential = await self._config.credentials.current()
        timeout = ClientTimeout(connect=self._connect_timeout, sock_read=request.timeout)
        try:
            reply = await self._open(request, credential, timeout)
        except _AIOHTTP_FAULTS as problem:
            raise self._failure(request, problem) from problem
        try:
            if reply.status == 401:
                self._config.credentials.doubt()
            yield _HttpStream(reply, request)
        finally:
            # A TLS good-bye takes turns of the loop that a caller who is leaving may not grant.
            if reply.connection is not None and reply.connection.transport is not None:
                reply.connection.transport.abort()
            reply.close()

    async def close(self) -> None:
        """Let go of all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _limit(self, seconds: float) -> ClientTimeout:
        """The limit of a request that has to end; there are a handful, made once each."""
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
        return self._current_session(credential.certificate).request(
            request.method,
            URL(self._prefix + request.path, encoded=True),
            data=request.body,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            ssl=self._ssl,
            server_hostname=self._config.server_name,
            proxy=self._config.proxy,
        )

    def _current_session(self, certificate: Certificate | None) -> aiohttp.ClientSession:
        """The open session; a new TLS context (hence new connections) when what we trust or show changed."""
        authority = self._config.authority.read() if self._config.authority else None
        if self._session is None or self._session.closed:
            self._session = self._new_session()
        elif self._shown == (authority, certificate):
            return self._session
        if self._base.scheme == "https":
            self._ssl = tls.context(authority, certificate, insecure=self._config.insecure)
        self._shown = (authority, certificate)
        return self._session

    def _new_session(self) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Inflating a list costs more than decoding it, so no compression is asked for.
            headers=[
                ("Accept", "application/json"),
                ("Accept-Encoding", "identity"),
                ("User-Agent", USER_AGENT),
                *self._config.headers,
            ],
            skip_auto_headers=("Content-Type",),
            auto_decompress=False,
        )
        # aiohttp repeats PUT and DELETE by itself when a kept connection turns out to be dead. The first may
        # have taken effect, and then its repetition answers 404 or 409: a lie about our own write.
        session._retry_connection = False
        return session

    def _failure(self, request: Request, problem: BaseException) -> ConnectError | LostReply:
        if isinstance(problem, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError):
            return ConnectError(f"{self._config.server} {_why_unreachable(problem)}")
        return _lost(request, problem)


class _HttpStream:
    """aiohttp's reply as a Stream."""

    def __init__(self, reply: aiohttp.ClientResponse, request: Request) -> None:
        self._reply = reply
        self._request = request
        self.status = reply.status
        self.headers: Mapping[str, str] = reply.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """What has arrived, as soon as it has."""
        content = self._reply.content
        while not content.at_eof():
            try:
                chunk = await content.readany()
            except _AIOHTTP_FAULTS as problem:
                raise _lost(self._request, problem) from problem
            if chunk:
                yield chunk


def _lost(request: Request, problem: BaseException) -> LostReply:
    outcome = "; it may have taken effect" if request.is_write else ""
    if isinstance(problem, TimeoutError):
        return LostReply(f"{request}: no answer in {request.timeout:g} s{outcome}")
    return LostReply(f"{request}: connection lost ({_one_line(problem)}){outcome}")


def _why_unreachable(problem: BaseException) -> str:
    """What stands in the way of a connection, and what to do about it."""
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        return _why_untrusted(problem.certificate_error)
    if isinstance(problem, aiohttp.ClientConnectorSSLError):
        return (
            f"does not speak TLS with us ({_one_line(problem.os_error)}): check the server's address and port"
        )
    if isinstance(problem, aiohttp.ClientConnectorError):
        why = problem.os_error.strerror or _one_line(problem.os_error)
        return f"cannot be reached ({why}): check that it runs, and the server's address"
    return "did not take a connection in time: check the server's address and the network"


def _why_untrusted(problem: Exception) -> str:
    words = getattr(problem, "verify_message", "") or _one_line(problem)
    if "expired" in words:
        return "shows a certificate that has expired: renew it, or check this machine's clock"
    if "mismatch" in words or "not valid for" in words:
        return f"shows a certificate for another name ({words}): correct the address or set tls-server-name"
    return f"cannot be trusted ({words}): set the cluster's certificate-authority to the one that signed it"


def _one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__
