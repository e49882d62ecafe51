"""Connections are kept only while they are good; the parser of replies is tested in test_http_reply.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from grove.kube.client import http1
from grove.kube.client.http1 import ConnectionFailed, ConnectionPool
from grove.kube.client.http_reply import BadReply, HttpReply

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


class Server:
    """Answers each request on each connection as it is told."""

    def __init__(self) -> None:
        self.answer: Callable[[asyncio.StreamWriter], None] = lambda writer: writer.write(PLAIN)
        self.asked: list[int] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.writers)
        self.writers.append(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.asked.append(number)
                self.answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def met() -> AsyncIterator[tuple[Server, Callable[[], asyncio.Future[HttpReply]]]]:
    """A server, and a way to ask it."""
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    connections = ConnectionPool("127.0.0.1", listening.sockets[0].getsockname()[1])

    def ask() -> asyncio.Future[HttpReply]:
        message = b"GET / HTTP/1.1\r\n\r\n"
        return asyncio.ensure_future(connections.send(message, None, None, connect=60, total=60))

    try:
        yield server, ask
    finally:
        await connections.close()
        for writer in server.writers:
            writer.close()
        listening.close()
        await listening.wait_closed()


async def test_a_kept_connection_is_used_again_and_one_that_ends_is_not() -> None:
    async with met() as (server, ask):
        await ask()
        await ask()
        server.answer = lambda writer: writer.write(LAST)
        await ask()
        server.answer = lambda writer: writer.write(PLAIN)
        await ask()
        await asyncio.gather(ask(), ask())
    assert server.asked[:4] == [0, 0, 0, 1]
    assert sorted(server.asked[4:]) == [1, 2]


async def test_a_server_that_hangs_up_tears_the_reply_off() -> None:
    async with met() as (server, ask):
        server.answer = lambda writer: writer.close()
        with pytest.raises(ConnectionError):
            await ask()


async def test_who_does_not_wait_leaves_no_reply_for_the_next() -> None:
    async with met() as (server, ask):
        asked = asyncio.Event()
        server.answer = lambda _: asked.set()
        waiting = ask()
        await asked.wait()
        waiting.cancel()
        server.answer = lambda writer: writer.write(PLAIN)
        assert (await ask()).body == b"hello"
    assert server.asked == [0, 1]


async def test_what_nobody_needs_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "_IDLE_TIMEOUT", 0.0)
    async with met() as (server, ask):
        await ask()
        await server.writers[0].wait_closed()
        await ask()
    assert server.asked == [0, 1]


async def test_what_was_kept_too_long_is_not_used_although_nobody_has_swept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loop that stands still does not learn that the server has closed a connection."""
    monkeypatch.setattr(http1, "_IDLE_TIMEOUT", 0.0)
    monkeypatch.setattr(ConnectionPool, "_close_idle", lambda _: None)
    async with met() as (server, ask):
        await ask()
        await ask()
    assert server.asked == [0, 1]


async def test_bytes_after_a_reply_never_answer_the_next_request() -> None:
    async with met() as (server, ask):
        server.answer = lambda writer: writer.write(PLAIN + PLAIN.replace(b"hello", b"other"))
        assert [(await ask()).body for _ in range(3)] == [b"hello"] * 3
    assert server.asked == [0, 1, 2]


class Wire(asyncio.Transport):
    """Where nothing goes out and a test says what comes in."""

    aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Nothing is sent."""

    def abort(self) -> None:
        self.aborted = True


async def test_bytes_that_follow_a_reply_close_the_connection() -> None:
    """Even if the request that waits for the reply has not resumed yet."""
    connection, wire = http1._Connection(lambda _: None, lambda _: None), Wire()
    connection.connection_made(wire)
    waiting = asyncio.ensure_future(connection.send(b""))
    await asyncio.sleep(0)
    connection.data_received(PLAIN)
    connection.data_received(b"HTTP/1.1 2")
    assert wire.aborted
    assert (await waiting).body == b"hello"


async def test_what_is_not_http_fails_the_request_and_closes_the_connection() -> None:
    async with met() as (server, ask):
        server.answer = lambda writer: writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n")
        with pytest.raises(BadReply, match="Content-Length"):
            await ask()
        server.answer = lambda writer: writer.write(PLAIN)
        assert (await ask()).body == b"hello"
    assert server.asked == [0, 1]


async def test_nobody_there() -> None:
    async with met() as (server, ask):
        pass
    with pytest.raises(ConnectionFailed):
        await ask()
    assert not server.asked
