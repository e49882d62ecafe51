"""The stream of an open page: deltas, heartbeats, resets, and peers that open many or do not read."""

from __future__ import annotations

import asyncio
import json

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from grove import timing
from grove.dashboard.access.caller import Caller, OwnAccess, Presented
from grove.dashboard.access.errors import NotSignedIn, ReviewUnavailable
from grove.dashboard.pages.errors import PageError
from grove.dashboard.rights import Rights
from tests.dashboard.server.running import Events, Running, running


class ChangingAccess(OwnAccess):
    """Rights that change, a session that ends, reviews that fail."""

    def __init__(self) -> None:
        super().__init__()
        self.rights, self.problem = Rights(), list[PageError]()
        self.end = asyncio.Event()

    async def caller(self, presented: Presented) -> Caller:
        if self.problem:
            raise self.problem[0]
        return replace(await super().caller(presented), rights=self.rights)

    def ended(self, presented: Presented) -> asyncio.Event:
        return self.end


async def opened(server: Running, since: str = "0", **headers: str) -> Events:
    answer = await server.get(f"/api/stream?since={since}", **headers)
    assert answer.status == 200, await answer.text()
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    return Events(answer)


async def raw_stream(server: Running) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    writer.write(f"GET /api/stream?since=0 HTTP/1.1\r\nHost: localhost:{server.port}\r\n\r\n".encode())
    return reader, writer


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats follow each other at once."""
    monkeypatch.setattr(timing, "HEARTBEAT_INTERVAL", 0.05)


async def test_stream_begins_at_once_and_sends_deltas() -> None:
    async with running("a") as server, asyncio.timeout(10):
        await server.board.change("a/demo", "first")
        events = await opened(server)
        assert await events.next() == ("retry", "2000")
        name, data = await events.next()
        assert name == "heartbeat"
        assert json.loads(data) == {"now": "2026-01-01T00:00:00Z", "connection": {}, "operator": None}
        for number, summary in enumerate(("first", "second"), 1):
            name, data = await events.next(name="delta")
            assert json.loads(data)["version"] == str(number)
            assert json.loads(data)["sets"]["a/demo"]["summary"] == summary
            await server.board.change("a/demo", "second")


async def test_stream_goes_on_from_the_last_event() -> None:
    async with running("a") as server, asyncio.timeout(10):
        for summary in ("first", "second", "third"):
            await server.board.change("a/demo", summary)
        events = await opened(server, since="1", **{"Last-Event-ID": "2"})
        assert "third" in (await events.next(name="delta"))[1]


async def test_version_that_is_too_old_is_reset() -> None:
    async with running("a") as server, asyncio.timeout(10):
        events = await opened(server, since="other-process")
        assert await events.next(name="reset") == ("reset", "{}")
        with pytest.raises(EOFError):
            await events.next()


@pytest.mark.usefixtures("often")
async def test_changed_rights_reset_the_stream() -> None:
    access = ChangingAccess()
    async with running("a", access=access) as server, asyncio.timeout(10):
        events = await opened(server)
        await events.next(name="heartbeat")
        access.rights = Rights(frozenset())
        await events.next(name="reset")


@pytest.mark.usefixtures("often")
async def test_lost_sign_in_resets_the_stream() -> None:
    access = ChangingAccess()
    async with running("a", access=access) as server, asyncio.timeout(10):
        events = await opened(server)
        await events.next(name="heartbeat")
        access.problem.append(NotSignedIn())
        await events.next(name="reset")


async def test_end_of_the_session_resets_the_stream_at_once() -> None:
    access = ChangingAccess()
    async with running("a", access=access) as server, asyncio.timeout(5):
        events = await opened(server)
        await events.next(name="heartbeat")
        access.end.set()
        await events.next(name="reset")


@pytest.mark.usefixtures("often")
async def test_unknown_rights_send_heartbeats_only() -> None:
    access = ChangingAccess()
    async with running("a", access=access) as server, asyncio.timeout(10):
        events = await opened(server)
        await events.next(name="heartbeat")
        access.problem.append(ReviewUnavailable("down"))
        for _ in range(2):  # the review of the first one may still have been answered
            await events.next(name="heartbeat")
        await server.board.change("a/demo")
        for _ in range(3):
            name, data = await events.next()
            assert name == "heartbeat"
            found = json.loads(data)["connection"]
            assert (found["connected"], found["since"]) == (False, "2026-01-01T00:00:00Z")
            assert found["problem"].startswith("your rights cannot be reviewed: ")
        access.problem.clear()
        name, data = await events.next(name="heartbeat")
        while not json.loads(data)["connection"].get("connected", True):
            name, data = await events.next(name="heartbeat")
        await events.next(name="delta")


async def test_bug_ends_the_stream_and_is_logged() -> None:
    async with running("a") as server, asyncio.timeout(10):
        events = await opened(server)
        await events.next(name="heartbeat")
        with capture_logs() as logs:
            await server.board.change("a/broken")
            with pytest.raises(EOFError):
                await events.next()
        assert [each["event"] for each in logs] == ["stream failed"]


async def test_streams_of_one_sender_are_bounded() -> None:
    async with running("a") as server, asyncio.timeout(20):
        streams = [await server.get("/api/stream?since=0") for _ in range(timing.DASHBOARD_STREAMS_PER_USER)]
        refused = await server.get("/api/stream?since=0")
        assert refused.status == 429
        assert refused.headers["Retry-After"] == "10"
        streams.pop().close()
        async with asyncio.timeout(timing.HEARTBEAT_INTERVAL / 2):  # and not at the next heartbeat
            await server.board.until_streams(len(streams))
        assert (await server.get("/api/stream?since=0")).status == 200


async def test_streams_end_when_the_server_stops() -> None:
    async with asyncio.timeout(10):
        async with running("a") as server:
            reader, writer = await raw_stream(server)
            await reader.readuntil(b"event: heartbeat")
            board, begun = server.board, asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - begun < timing.SERVER_STOP_TIMEOUT
        assert (await reader.read()).endswith(b"0\r\n\r\n"), "the answer is complete"
        assert board.open_streams == 0
        writer.close()


async def test_slow_reader_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "RESPONSE_TIMEOUT", 0.3)
    async with running("a") as server, asyncio.timeout(20):
        _reader, writer = await raw_stream(server)
        await server.board.until_streams(1)
        for _ in range(40):
            await server.board.change("a/demo", "x" * 500_000)
        await server.board.until_streams(0)
        writer.close()


async def test_half_open_requests_leave_room_for_others() -> None:
    async with running("a") as server, asyncio.timeout(60):
        head = f"GET /api/stream?since=0 HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
        half_open = []
        for _ in range(500):
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(head.encode())
            half_open.append(writer)
        assert (await server.get("/api/picture")).status == 200
        events = await opened(server)
        await events.next(name="heartbeat")
        for writer in half_open:
            writer.close()
