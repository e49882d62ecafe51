"""Endless lines of a watch and endless replies: they are an error before they use up the memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from grove import timing
from grove.kube.auth.config import Config
from grove.kube.auth.credentials import StaticCredentials
from grove.kube.cache import reflector
from grove.kube.client import watch
from grove.kube.client.resource import PODS
from grove.kube.client.rest import RestClient
from grove.kube.client.retry import NO_RETRY
from grove.kube.errors import InternalError, LostReply
from tests.kube.cache.reflector_harness import FAST_BACKOFF, bookmark, event, reflecting, stream
from tests.kube.scripted_server import serve


async def endless(piece: bytes, drawn: list[int]) -> AsyncIterator[bytes]:
    while True:
        drawn.append(len(piece))
        yield piece


@pytest.mark.parametrize("piece", [b"x", b"x" * 999, b"x" * 50_000])
async def test_endless_line_is_an_error(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "MAX_WATCH_LINE", 10_000)
    drawn: list[int] = []
    with pytest.raises(LostReply, match="more than 10000 bytes"):
        await anext(watch.line_batches(endless(piece, drawn)))
    assert sum(drawn) <= 10_000 + len(piece)


async def test_lines_up_to_the_limit_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "MAX_WATCH_LINE", 10)

    async def chunks() -> AsyncIterator[bytes]:
        for piece in (b"12345", b"67890\n12345", b"67890\n", b"\n1234567890", b"\n"):
            yield piece

    assert [batch async for batch in watch.line_batches(chunks())] == [[b"1234567890"]] * 2 + [[]] + [
        [b"1234567890"]
    ]


async def test_watch_with_endless_line_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "MAX_WATCH_LINE", 10_000)
    monkeypatch.setattr(reflector, "AFTER_FAILURE", FAST_BACKOFF)
    start = event("ADDED", "a", 1) + bookmark(5, initial_end=True)
    script = stream(start, b"x" * 20_000, stay=True), stream(event("ADDED", "b", 6), stay=True)
    with capture_logs() as logs:
        async with reflecting(*script) as harness:
            await harness.until_cached(a=1, b=6)
    (line,) = [each for each in logs if each["event"] == "watch failed"]
    assert "more than 10000 bytes" in line["reason"]


async def flood(request: web.Request) -> web.StreamResponse:
    """A rejection whose body goes on until the client closes the connection."""
    response = web.StreamResponse(status=500)
    await response.prepare(request)
    with suppress(ConnectionError):
        while True:
            await response.write(b"x" * 100_000)
    return response


async def test_endless_body_of_rejected_watch_ends() -> None:
    async with serve() as server, RestClient(server.config(), retry=NO_RETRY) as sender:
        server.script = [flood]
        with pytest.raises(InternalError, match="xxx"):
            async with sender.stream(PODS, {}, idle_timeout=60):
                pass


async def test_endless_reply_through_proxy_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "MAX_REPLY_BODY", 1_000_000)
    async with serve() as server:
        server.script = [flood]
        behind = Config(server="http://behind.example", credentials=StaticCredentials(), proxy=server.url)
        async with RestClient(behind, retry=NO_RETRY) as sender:
            with pytest.raises(LostReply, match=r"more than 1000000 bytes.*check what answers"):
                await sender.raw("GET", "/x")
