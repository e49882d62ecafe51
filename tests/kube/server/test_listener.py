"""A server whose peers do not read, and whose handlers fail."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from grove import timing
from grove.kube.certs.certificates import issue_authority, issue_serving
from grove.kube.certs.serving_context import ServingContext
from grove.kube.server.connections import ConnectionLimits
from grove.kube.server.listener import bounded_runner, listening
from grove.kube.server.refusals import Refusal, Refusals
from tests.kube.server.test_refusals import count

Address = tuple[str, int]


@asynccontextmanager
async def serving(
    *, name: str = "listener", total: int = 8, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Address]:
    async def large(_request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 2**25)

    async def small(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def failing(_request: web.Request) -> web.Response:
        raise ZeroDivisionError

    application, refusals = web.Application(), Refusals(name)
    application.router.add_get("/large", large)
    application.router.add_get("/small", small)
    application.router.add_get("/failing", failing)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        runner = bounded_runner(application, refusals)
        async with listening(listener, runner, refusals, ConnectionLimits(total, total), tls):
            yield "127.0.0.1", listener.getsockname()[1]


async def get(address: Address, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return reader, writer


async def test_unread_response_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "RESPONSE_TIMEOUT", 0.2)
    before = count("listener", Refusal.RESPONSE_TIMEOUT)
    async with serving() as address, asyncio.timeout(20):
        reader, writer = await get(address, "/large")
        await asyncio.sleep(0.6)  # it does not read for longer than it may
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(2**25)
        assert count("listener", Refusal.RESPONSE_TIMEOUT) == before + 1
        writer.close()


async def test_response_that_is_read_keeps_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "RESPONSE_TIMEOUT", 0.5)
    async with serving() as address, asyncio.timeout(20):
        reader, writer = await get(address, "/small")
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(3)
            await asyncio.sleep(0.7)
            writer.write(b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n")
        writer.close()


async def test_failing_handler_is_500_and_logged() -> None:
    async with serving() as address, asyncio.timeout(20):
        with capture_logs() as logs:
            reader, writer = await get(address, "/failing")
            assert b" 500 " in await reader.readline()
        writer.close()
    assert [line["event"] for line in logs] == ["request failed"]


async def test_server_stops_with_open_handshakes_and_requests() -> None:
    async with asyncio.timeout(20):
        async with serving() as address:
            streams = [await get(address, "/large") for _ in range(8)]
        for reader, writer in streams:
            with suppress(OSError):
                await reader.read()
            writer.close()


async def test_stopped_server_waits_for_no_peer_to_end_its_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "TLS_SHUTDOWN_TIMEOUT", 600.0)
    serving_context, now = ServingContext(), datetime.now(UTC)
    serving_context.use(issue_serving(issue_authority(now), ("127.0.0.1",), now))
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def keep_alive(address: Address) -> socket.socket:
        """A connection that has had its response, and will not be read from again."""
        peer = context.wrap_socket(socket.create_connection(address, timeout=20))
        peer.sendall(b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not peer.recv(4096).endswith(b"ok\n"):
            pass
        return socket.socket(fileno=peer.detach())

    async with serving(tls=serving_context.context) as address:
        peer = await asyncio.to_thread(keep_alive, address)
    peer.settimeout(20)
    with peer, suppress(ConnectionResetError):
        while peer.recv(4096):
            pass


@pytest.mark.parametrize(
    "head",
    [
        f"GET /small HTTP/1.1\r\nAuthorization: Bearer secret{'x' * 10_000}\r\n\r\n",
        "GET /small HTTP/1.1\r\nAuthorization: Bearer secret\x00\r\n\r\n",
        "GET /small HTTP/1.1\r\nAuthorization Bearer secret\r\n\r\n",
        "GET /secret HTTP/9.9\r\n\r\n",
        "secret\r\n\r\n",
    ],
)
async def test_malformed_request_is_neither_sent_back_nor_logged(head: str) -> None:
    async with serving(name="malformed") as address, asyncio.timeout(20):
        with capture_logs() as logs:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(head.encode())
            answer = await reader.read()
            writer.close()
    assert answer.startswith(b"HTTP/1.0 400 Bad Request\r\n")
    assert answer.endswith(b"\r\n\r\n400 Bad Request\n")
    assert b"nosniff" in answer
    assert [each["event"] for each in logs] == ["refused"]
    assert b"secret" not in answer
    assert "secret" not in str(logs)
