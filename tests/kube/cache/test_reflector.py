"""The reflector's protocol: how it lists, resumes, starts over, falls back and waits, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from grove.kube import metrics
from grove.kube.cache import reflector
from grove.kube.cache.cache import Cache, version_of
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import PODS, Resource
from grove.kube.client.retry import NO_RETRY, Backoff
from grove.kube.client.transport import Request, Response
from grove.kube.client.watch import Bookmark, EventDecoder, line_batches
from grove.kube.errors import Gone
from grove.kube.testing.virtual_time import run_in_virtual_time
from tests.kube.scripted_server import Answer, ScriptedServer, failure, reply, serve

QUICK = Backoff(first=0.001, longest=0.002)


def event(kind: str, name: str, version: int, **more: object) -> bytes:
    found = {
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": str(version)} | more
    }
    return msgspec.json.encode({"type": kind, "object": found}) + b"\n"


def bookmark(version: int, *, all_told: bool = False) -> bytes:
    notes = {"annotations": {"k8s.io/initial-events-end": "true"}} if all_told else {}
    return (
        msgspec.json.encode(
            {
                "type": "BOOKMARK",
                "object": {"kind": "Pod", "metadata": {"resourceVersion": str(version)} | notes},
            }
        )
        + b"\n"
    )


def error(code: int, reason: str) -> bytes:
    status = {"kind": "Status", "metadata": {}, "code": code, "reason": reason, "message": "too old"}
    return msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"


def stream(*pieces: bytes, tear: bool = False, stay: bool = False) -> Answer:
    """A watch that sends its pieces, then ends, is torn off, or stays open in silence."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if stay:
            await asyncio.Event().wait()
        if tear:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


QUIET = stream(stay=True)


class Bench:
    """A scripted server, a cache and its reflector, and a way to wait for what the cache shows."""

    def __init__(self, server: ScriptedServer, cache: Cache[Object]) -> None:
        self.server = server
        self.cache = cache
        self.changed = asyncio.Event()
        cache.subscribe(lambda old, new: self.changed.set())

    def held(self) -> dict[str, int]:
        return {found.metadata.name: version_of(found) for found in self.cache}

    async def until_held(self, **wanted: int) -> None:
        async with asyncio.timeout(60):
            while self.held() != wanted:
                self.changed.clear()
                await self.changed.wait()

    async def until_asked(self, times: int) -> list[str]:
        """Wait for the n-th request; the queries so far."""
        async with asyncio.timeout(60):
            while len(self.server.seen) < times:
                await self.server.asked.wait()
        return [seen.query_string for seen in self.server.seen]


class FakeCrdWaiter:
    """A stand-in for the watch on CRDs that arrives when told."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()

    async def wait(self, resource: Resource, timeout: float) -> bool:
        await self.arrived.wait()
        return True


@asynccontextmanager
async def reflecting(
    *script: Answer, crd_waiter: FakeCrdWaiter | None = None, **options: bool
) -> AsyncIterator[Bench]:
    async with serve() as server:
        server.script = [*script]
        async with Client(server.config(), retry=NO_RETRY) as client:
            bench = Bench(server, Cache(PODS, Object))
            running = asyncio.create_task(
                Reflector(client, bench.cache, backoff=QUICK, crd_watch=crd_waiter, **options).run()
            )
            try:
                yield bench
            finally:
                running.cancel()
                await asyncio.wait([running])


async def test_a_streaming_list_syncs_at_its_bookmark_and_goes_on_as_a_watch() -> None:
    pieces = (event("ADDED", "a", 5), event("ADDED", "b", 3), bookmark(10, all_told=True))
    async with reflecting(
        stream(*pieces, event("MODIFIED", "a", 11), event("DELETED", "b", 12), stay=True)
    ) as bench:
        await bench.until_held(a=11)
        assert bench.cache.synced.is_set()
        query = bench.server.seen[0].query
        assert query["sendInitialEvents"] == query["watch"] == query["allowWatchBookmarks"] == "true"
        assert query["resourceVersionMatch"] == "NotOlderThan"
        assert "resourceVersion" not in query


async def test_nothing_is_synced_before_all_has_been_told() -> None:
    async with reflecting(stream(event("ADDED", "a", 5), bookmark(7)), QUIET) as bench:
        await bench.until_asked(2)
        assert bench.held() == {}
        assert not bench.cache.synced.is_set()
        assert "sendInitialEvents" in bench.server.seen[1].query


async def test_changes_before_the_bookmark_count() -> None:
    pieces = (
        event("ADDED", "a", 5),
        event("ADDED", "b", 6),
        event("DELETED", "a", 7),
        bookmark(8, all_told=True),
    )
    async with reflecting(stream(*pieces, stay=True)) as bench:
        await bench.until_held(b=6)


@pytest.mark.parametrize("tear", [False, True])
async def test_an_ended_or_torn_stream_is_resumed_where_it_was(tear: bool) -> None:
    first = stream(
        event("ADDED", "a", 5), bookmark(10, all_told=True), bookmark(20), event("ADDED", "b", 21), tear=tear
    )
    async with reflecting(first, stream(event("ADDED", "c", 22), stay=True)) as bench:
        await bench.until_held(a=5, b=21, c=22)
        query = bench.server.seen[1].query
        assert query["resourceVersion"] == "21"
        assert "sendInitialEvents" not in query


async def test_a_bookmark_moves_the_point_of_resumption() -> None:
    async with reflecting(stream(bookmark(10, all_told=True), bookmark(99)), QUIET) as bench:
        await bench.until_asked(2)
        assert bench.server.seen[1].query["resourceVersion"] == "99"


@pytest.mark.parametrize(
    "expiry", [failure(410, "Expired"), stream(error(410, "Expired"))], ids=["as reply", "as event"]
)
async def test_a_forgotten_version_starts_over_and_drops_what_is_gone(expiry: Answer) -> None:
    first = stream(event("ADDED", "a", 5), event("ADDED", "b", 6), bookmark(10, all_told=True))
    again = stream(event("ADDED", "b", 6), bookmark(50, all_told=True), stay=True)
    async with reflecting(first, expiry, again) as bench:
        await bench.until_held(b=6)
        assert "sendInitialEvents" in bench.server.seen[2].query


@pytest.mark.parametrize("refusal", [failure(422, "Invalid"), failure(400, "BadRequest")])
async def test_a_server_without_streaming_lists_is_listed_in_pages(refusal: Answer) -> None:
    listing = {
        "metadata": {"resourceVersion": "10"},
        "items": [{"metadata": {"name": "a", "resourceVersion": "5"}}],
    }
    async with reflecting(refusal, reply(listing), stream(event("ADDED", "b", 11), stay=True)) as bench:
        await bench.until_held(a=5, b=11)
        assert bench.cache.synced.is_set()
        assert bench.server.seen[1].query_string == "limit=500"
        assert bench.server.seen[2].query["resourceVersion"] == "10"


async def test_a_server_that_takes_it_for_a_plain_watch_is_listed_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflector, "SYNC_IDLE_TIMEOUT", 0.05)
    listing = {
        "metadata": {"resourceVersion": "10"},
        "items": [{"metadata": {"name": "a", "resourceVersion": "5"}}],
    }
    async with reflecting(stream(event("ADDED", "a", 5), stay=True), reply(listing), QUIET) as bench:
        await bench.until_held(a=5)


@pytest.mark.parametrize("fault", [failure(500), failure(503), failure(429), failure(403, "Forbidden")])
async def test_a_refused_watch_is_tried_again(fault: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "SLOW_BACKOFF", QUICK)
    async with reflecting(
        fault, stream(event("ADDED", "a", 5), bookmark(9, all_told=True), stay=True)
    ) as bench:
        await bench.until_held(a=5)


async def test_a_trouble_that_lasts_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "SLOW_BACKOFF", QUICK)
    forbidden, overload = failure(403, "Forbidden"), failure(503)
    well = stream(event("ADDED", "a", 5), bookmark(9, all_told=True))
    with capture_logs() as said:
        async with reflecting(forbidden, forbidden, overload, overload, well, overload, QUIET) as bench:
            await bench.until_asked(7)
    told = [line for line in said if line["event"] == "watch interrupted"]
    assert [(line["log_level"], line["reason"].split("(")[1][:3]) for line in told] == [
        ("warning", "403"),
        ("info", "503"),
        ("info", "503"),
    ]


async def test_one_object_that_cannot_be_decoded_is_counted_and_skipped() -> None:
    counter = metrics.undecodable_total.labels("pods")
    before = counter._value.get()
    odd = event("ADDED", "odd", 6, labels="not a mapping")
    pieces = (
        event("ADDED", "a", 5),
        odd,
        b"{rubbish\n",
        bookmark(9, all_told=True),
        odd,
        event("ADDED", "b", 10),
    )
    async with reflecting(stream(*pieces, stay=True)) as bench:
        await bench.until_held(a=5, b=10)
    assert counter._value.get() == before + 3


async def test_a_line_larger_than_any_buffer_cut_anywhere_is_one_event() -> None:
    whole = event("ADDED", "big", 5, annotations={"blob": "x" * 1_500_000}) + bookmark(9, all_told=True)
    pieces = [whole[i : i + 70_001] for i in range(0, len(whole), 70_001)]
    async with reflecting(stream(*pieces, stay=True)) as bench:
        await bench.until_held(big=5)


async def test_an_absent_resource_settles_empty_and_is_waited_for() -> None:
    crd_waiter = FakeCrdWaiter()
    script = (failure(404, "NotFound"), stream(event("ADDED", "a", 5), bookmark(9, all_told=True), stay=True))
    async with reflecting(*script, crd_waiter=crd_waiter) as bench:
        async with asyncio.timeout(60):
            await bench.cache.synced_or_absent.wait()
        assert not bench.cache.synced.is_set()
        assert len(bench.server.seen) == 1
        crd_waiter.arrived.set()
        await bench.until_held(a=5)
        assert bench.cache.synced.is_set()


async def test_a_resource_that_goes_away_takes_its_objects_along() -> None:
    script = (stream(event("ADDED", "a", 5), bookmark(9, all_told=True)), failure(404, "NotFound"))
    async with reflecting(*script, crd_waiter=FakeCrdWaiter()) as bench:
        await bench.until_held(a=5)
        await bench.until_held()
        assert not bench.cache.synced.is_set()


class LateToServe:
    """A server that begins to serve a resource after an hour."""

    def __init__(self, code: int, reason: str) -> None:
        self.code, self.reason = code, reason
        self.headers: dict[str, str] = {}

    @property
    def status(self) -> int:
        return self.code if asyncio.get_running_loop().time() < 3600.0 else 200

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[LateToServe]:
        yield self

    async def chunks(self) -> AsyncIterator[bytes]:
        if self.status >= 300:
            yield msgspec.json.encode({"kind": "Status", "code": self.code, "reason": self.reason})
            return
        yield bookmark(9, all_told=True)
        await asyncio.Event().wait()

    async def send(self, request: Request) -> Response:
        raise AssertionError(request)

    async def close(self) -> None: ...


@pytest.mark.parametrize(("code", "reason"), [(404, "NotFound"), (403, "Forbidden")])
def test_however_long_a_resource_was_not_to_be_had_it_is_found_soon_after(code: int, reason: str) -> None:
    """Where nobody tells of its arrival, asking now and then is all there is; but people wait for it."""

    async def play() -> float:
        cache = Cache(PODS, Object)
        task = asyncio.create_task(Reflector(Client(LateToServe(code, reason)), cache, seed=1).run())
        await cache.synced.wait()
        task.cancel()
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(play()) < 3600.0 + 16.0


async def test_batches_join_what_was_cut_and_drop_a_torn_end() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for chunk in (b"a", b"b\nc\n\n", b"d", b"e", b"f\ng"):
            yield chunk

    assert [batch async for batch in line_batches(chunks())] == [[b"ab", b"c"], [b"def"]]


def test_an_error_event_is_raised_even_if_it_fits_the_type() -> None:
    with pytest.raises(Gone, match="watch pods: too old"):
        EventDecoder(Object, PODS).decode(error(410, "Expired"))


def test_a_bookmark_is_known_even_if_it_does_not_fit_the_type() -> None:
    strict = msgspec.defstruct("Strict", [("metadata", dict), ("spec", dict)])
    assert EventDecoder(strict, PODS).decode(bookmark(7, all_told=True)) == Bookmark("7", True)
