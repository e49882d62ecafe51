"""Replies that are read while they arrive: their ends, limits and failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from grove import timing
from grove.kube.client.http1 import Server
from grove.kube.client.http_reply import BadReply
from grove.kube.client.http_stream import HttpStream, open_stream

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n"
REQUEST = b"GET / HTTP/1.1\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that sends nothing; the test provides the received data."""

    def __init__(self) -> None:
        super().__init__()
        self.reading, self.aborted = True, False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Does nothing."""

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        self.aborted = True


@asynccontextmanager
async def connected(silence: float = 60.0) -> AsyncIterator[tuple[HttpStream, Wire]]:
    stream, wire = HttpStream(silence), Wire()
    stream.connection_made(wire)
    try:
        yield stream, wire
    finally:
        stream.close()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def test_pieces_are_read_as_they_arrive() -> None:
    async with connected() as (stream, _):
        sent = asyncio.ensure_future(stream.request(REQUEST))
        await asyncio.sleep(0)
        stream.data_received(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD[:20])
        stream.data_received(HEAD[20:])
        status, headers = await sent
        assert (status, headers["X-A"]) == (200, "b")
        waiting = asyncio.ensure_future(stream.read())
        await asyncio.sleep(0)
        stream.data_received(chunk(b"one") + chunk(b"two") + b"5\r\nth")
        assert await waiting == b"onetwoth"
        stream.data_received(b"ree\r\n")
        assert await stream.read() == b"ree"
        stream.data_received(b"0\r\n\r\n")
        assert await stream.read() == b""
        assert await stream.read() == b""


@pytest.mark.parametrize(
    "reply",
    [
        HEAD + chunk(b"hello") + b"0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 404 Not Found\r\n\r\nother",
    ],
)
async def test_reply_in_one_piece_is_whole(reply: bytes) -> None:
    async with connected() as (stream, _):
        stream.data_received(reply)
        assert (await stream.request(REQUEST))[0] == 200
        assert [await stream.read(), await stream.read()] == [b"hello", b""]


async def test_reply_without_length_ends_with_the_connection() -> None:
    async with connected() as (stream, _):
        stream.data_received(b"HTTP/1.1 200 OK\r\n\r\nhello")
        stream.connection_lost(None)
        assert [await stream.read(), await stream.read()] == [b"hello", b""]


async def test_closed_connection_before_end_is_an_error() -> None:
    async with connected() as (stream, _):
        stream.data_received(HEAD + chunk(b"one"))
        stream.connection_lost(None)
        assert await stream.read() == b"one"
        with pytest.raises(ConnectionError, match="the server closed the connection"):
            await stream.read()


@pytest.mark.parametrize("problem", [None, ConnectionResetError("reset")])
async def test_closed_connection_before_head_is_an_error(problem: Exception | None) -> None:
    async with connected() as (stream, _):
        waiting = asyncio.ensure_future(stream.request(REQUEST))
        await asyncio.sleep(0)
        stream.connection_lost(problem)
        with pytest.raises(ConnectionError, match=r"reset|the server closed the connection"):
            await waiting


async def test_invalid_http_is_a_bad_reply() -> None:
    async with connected() as (stream, _):
        stream.data_received(b"SSH-2.0\r\n")
        with pytest.raises(BadReply):
            await stream.request(REQUEST)
    async with connected() as (stream, _):
        stream.data_received(HEAD + chunk(b"one"))
        stream.data_received(b"nothing\r\n")
        assert await stream.read() == b"one"
        with pytest.raises(BadReply):
            await stream.read()


async def test_server_waits_while_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "STREAM_BUFFER", 10)
    async with connected() as (stream, wire):
        stream.data_received(HEAD + chunk(b"x" * 10))
        assert wire.reading
        stream.data_received(chunk(b"y"))
        assert not wire.reading
        assert await stream.read() == b"x" * 10 + b"y"
        assert wire.reading


async def test_body_of_any_length_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "MAX_REPLY_BODY", 10)
    async with connected() as (stream, _):
        stream.data_received(HEAD + chunk(b"x" * 100))
        assert await stream.read() == b"x" * 100


async def test_body_of_tiny_chunks_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log is sent line by line; what is around its chunks may be more than its lines."""
    monkeypatch.setattr(timing, "MAX_REPLY_OVERHEAD", 200)
    async with connected() as (stream, _):
        stream.data_received(HEAD)
        for _ in range(1000):
            stream.data_received(chunk(b"x"))
        assert await stream.read() == b"x" * 1000


async def test_silence_is_a_timeout() -> None:
    async with connected(silence=0.01) as (stream, _):
        with pytest.raises(TimeoutError):
            await stream.request(REQUEST)


async def test_silence_counts_from_the_last_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    async with connected(silence=10.0) as (stream, _):
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
        now[0] = 1e9  # far from the start of the loop
        stream.data_received(HEAD)
        for passed, ended in ((9.9, False), (10.0, True)):
            now[0] = 1e9 + passed
            stream._check_silence()
            assert stream._ended is ended


async def test_silence_is_not_counted_while_server_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "STREAM_BUFFER", 1)
    async with connected(silence=0.0) as (stream, _):
        stream.data_received(HEAD + chunk(b"many"))
        stream._check_silence()
        assert await stream.read() == b"many"


@asynccontextmanager
async def listening(answer: Callable[[asyncio.StreamWriter], None]) -> AsyncIterator[Server]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        answer(writer)
        await reader.read()  # until the client closes the connection
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Server("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await server.wait_closed()


async def test_close_ends_the_connection() -> None:
    async with listening(lambda writer: writer.write(HEAD + chunk(b"one"))) as server:
        stream = await open_stream(server, connect_timeout=60, silence=60)
        assert (await stream.request(REQUEST))[0] == 200
        assert await stream.read() == b"one"
        stream.close()
        with pytest.raises(ConnectionError):
            await stream.read()
