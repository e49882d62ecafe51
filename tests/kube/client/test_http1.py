"""The connection pool: when connections are reused; the parser of replies is tested in test_http_reply.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from grove import timing
from grove.kube.client import http1
from grove.kube.client.http1 import ConnectionFailed, ConnectionPool
from grove.kube.client.http_reply import BadReply, HttpReply

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


class Server:
    """Answers each request on each connection with `answer`."""

    def __init__(self) -> None:
        self.answer: Callable[[asyncio.StreamWriter], None] = lambda writer: writer.write(PLAIN)
        self.requests: list[int] = []
        """The number of the connection of each request."""
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.writers)
        self.writers.append(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.requests.append(number)
                self.answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def running_server() -> AsyncIterator[tuple[Server, Callable[[], asyncio.Future[HttpReply]]]]:
    """A server, and a function that sends a request to it."""
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    connections = ConnectionPool()
    address = http1.Server("127.0.0.1", listening.sockets[0].getsockname()[1])

    def send() -> asyncio.Future[HttpReply]:
        message = b"GET / HTTP/1.1\r\n\r\n"
        return asyncio.ensure_future(connections.send(message, address, connect=60, total=60))

    try:
        yield server, send
    finally:
        await connections.close()
        for writer in server.writers:
            writer.close()
        listening.close()
        await listening.wait_closed()


async def test_kept_connection_is_reused_and_closed_one_is_not() -> None:
    async with running_server() as (server, send):
        await send()
        await send()
        server.answer = lambda writer: writer.write(LAST)
        await send()
        server.answer = lambda writer: writer.write(PLAIN)
        await send()
        await asyncio.gather(send(), send())
    assert server.requests[:4] == [0, 0, 0, 1]
    assert sorted(server.requests[4:]) == [1, 2]


async def test_closed_connection_fails_the_request() -> None:
    async with running_server() as (server, send):
        server.answer = lambda writer: writer.close()
        with pytest.raises(ConnectionError):
            await send()


async def test_cancelled_request_leaves_no_reply_for_the_next() -> None:
    async with running_server() as (server, send):
        received = asyncio.Event()
        server.answer = lambda _: received.set()
        waiting = send()
        await received.wait()
        waiting.cancel()
        server.answer = lambda writer: writer.write(PLAIN)
        assert (await send()).body == b"hello"
    assert server.requests == [0, 1]


async def test_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "CONNECTION_IDLE_TIMEOUT", 0.0)
    async with running_server() as (server, send):
        await send()
        await server.writers[0].wait_closed()
        await send()
    assert server.requests == [0, 1]


async def test_expired_idle_connection_is_not_reused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a long pause, the loop has not yet processed that the server closed a connection."""
    monkeypatch.setattr(timing, "CONNECTION_IDLE_TIMEOUT", 0.0)
    monkeypatch.setattr(ConnectionPool, "_close_idle", lambda _: None)
    async with running_server() as (server, send):
        await send()
        await send()
    assert server.requests == [0, 1]


async def test_bytes_after_reply_never_answer_next_request() -> None:
    async with running_server() as (server, send):
        server.answer = lambda writer: writer.write(PLAIN + PLAIN.replace(b"hello", b"other"))
        assert [(await send()).body for _ in range(3)] == [b"hello"] * 3
    assert server.requests == [0, 1, 2]


class Wire(asyncio.Transport):
    """A transport that sends nothing; the test provides the received data."""

    aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Does nothing."""

    def abort(self) -> None:
        self.aborted = True


async def test_bytes_after_reply_close_the_connection() -> None:
    """Even if the request that waits for the reply has not resumed yet."""
    connection, wire = http1._Connection(lambda _: None, lambda _: None), Wire()
    connection.connection_made(wire)
    waiting = asyncio.ensure_future(connection.send(b""))
    await asyncio.sleep(0)
    connection.data_received(PLAIN)
    connection.data_received(b"HTTP/1.1 2")
    assert wire.aborted
    assert (await waiting).body == b"hello"


async def test_invalid_http_fails_request_and_closes_connection() -> None:
    async with running_server() as (server, send):
        server.answer = lambda writer: writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n")
        with pytest.raises(BadReply, match="Content-Length"):
            await send()
        server.answer = lambda writer: writer.write(PLAIN)
        assert (await send()).body == b"hello"
    assert server.requests == [0, 1]


async def test_connection_refused_raises_connection_failed() -> None:
    async with running_server() as (server, send):
        pass
    with pytest.raises(ConnectionFailed):
        await send()
    assert not server.requests
