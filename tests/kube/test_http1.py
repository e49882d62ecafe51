"""Replies read from bytes that are cut anywhere, and connections that are kept only while they are good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.kube import http1
from grove.kube.http1 import Connections, Reading, Reply, Unreached

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\nRETRY-AFTER:  7 \r\n\r\n"
    b"3;note=x\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)
BARE_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + PLAIN
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
NOTHING = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
OLD = b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"
REPLIES = {
    PLAIN: (200, b"hello", True),
    CHUNKED: (201, b"hello", True),
    BARE_CHUNKS: (200, b"hello", True),
    EARLY: (200, b"hello", True),
    EMPTY: (204, b"", True),
    NOTHING: (200, b"", True),
    LAST: (200, b"hello", False),
    OLD: (200, b"hello", False),
}


@given(st.sampled_from(sorted(REPLIES)), st.lists(st.integers(0, 140)))
def test_a_reply_is_the_same_however_it_is_cut(sent: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    reading, found = Reading(), list[Reply]()
    for begin, end in pairwise(places):
        assert not found, "it was whole before it ended"
        if (reply := reading.feed(sent[begin:end])) is not None:
            found.append(reply)
    (reply,) = found
    assert (reply.status, reply.body, reply.keeps) == REPLIES[sent]


def test_headers_are_found_however_they_are_spelled() -> None:
    reply = Reading().feed(CHUNKED)
    assert reply is not None
    assert reply.headers["Retry-After"] == "7"


def test_without_a_length_the_reply_ends_with_the_connection() -> None:
    reading = Reading()
    assert reading.feed(b"HTTP/1.1 200 OK\r\n\r\nhel") is None
    assert reading.feed(b"lo") is None
    reply = reading.end()
    assert reply is not None
    assert (reply.body, reply.keeps) == (b"hello", False)


@pytest.mark.parametrize("sent", [PLAIN[:-1], CHUNKED[:-2], PLAIN[:20], b""])
def test_a_reply_that_is_torn_off_is_none(sent: bytes) -> None:
    reading = Reading()
    assert reading.feed(sent) is None
    assert reading.end() is None


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 what\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"x" * 100_000,
    ],
)
def test_what_is_no_reply_is_refused(sent: bytes) -> None:
    with pytest.raises(ValueError, match=r"not HTTP|invalid literal|does not end"):
        Reading().feed(sent)


def test_a_connection_that_said_too_much_is_not_used_again() -> None:
    reply = Reading().feed(PLAIN + b"more")
    assert reply is not None
    assert not reply.keeps


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
async def met() -> AsyncIterator[tuple[Server, Callable[[], asyncio.Future[Reply]]]]:
    """A server, and a way to ask it."""
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    connections = Connections("127.0.0.1", listening.sockets[0].getsockname()[1])

    def ask() -> asyncio.Future[Reply]:
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
    monkeypatch.setattr(http1, "_KEPT", 0.0)
    async with met() as (server, ask):
        await ask()
        await server.writers[0].wait_closed()
        await ask()
    assert server.asked == [0, 1]


async def test_what_was_kept_too_long_is_not_used_although_nobody_has_swept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loop that stands still does not learn that the server has closed a connection."""
    monkeypatch.setattr(http1, "_KEPT", 0.0)
    monkeypatch.setattr(Connections, "_sweep", lambda _: None)
    async with met() as (server, ask):
        await ask()
        await ask()
    assert server.asked == [0, 1]


async def test_nobody_there() -> None:
    async with met() as (server, ask):
        pass
    with pytest.raises(Unreached):
        await ask()
    assert not server.asked
