"""The reflector's protocol: how it lists, resumes, starts over, falls back and waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from structlog.testing import capture_logs

from grove import timing
from grove.kube import metrics
from grove.kube.cache import reflector
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import PODS
from grove.kube.client.transport import Request, Response
from grove.kube.client.watch import Bookmark, EventDecoder, line_batches
from grove.kube.errors import Gone
from grove.kube.testing.virtual_time import run_in_virtual_time
from tests.kube.cache.reflector_harness import (
    FAST_BACKOFF,
    SILENT,
    FakeCrdWaiter,
    bookmark,
    error,
    event,
    reflecting,
    stream,
)
from tests.kube.scripted_server import Answer, failure, reply


async def test_streaming_list_syncs_at_bookmark_then_watches() -> None:
    pieces = (event("ADDED", "a", 5), event("ADDED", "b", 3), bookmark(10, initial_end=True))
    async with reflecting(
        stream(*pieces, event("MODIFIED", "a", 11), event("DELETED", "b", 12), stay=True)
    ) as harness:
        await harness.until_cached(a=11)
        assert harness.cache.synced.is_set()
        query = harness.server.seen[0].query
        assert query["sendInitialEvents"] == query["watch"] == query["allowWatchBookmarks"] == "true"
        assert query["resourceVersionMatch"] == "NotOlderThan"
        assert "resourceVersion" not in query


async def test_cache_is_not_synced_before_end_bookmark() -> None:
    async with reflecting(stream(event("ADDED", "a", 5), bookmark(7)), SILENT) as harness:
        await harness.until_requested(2)
        assert harness.cached() == {}
        assert not harness.cache.synced.is_set()
        assert "sendInitialEvents" in harness.server.seen[1].query


async def test_changes_before_end_bookmark_are_applied() -> None:
    pieces = (
        event("ADDED", "a", 5),
        event("ADDED", "b", 6),
        event("DELETED", "a", 7),
        bookmark(8, initial_end=True),
    )
    async with reflecting(stream(*pieces, stay=True)) as harness:
        await harness.until_cached(b=6)


@pytest.mark.parametrize("tear", [False, True])
async def test_ended_or_broken_stream_resumes_from_last_version(tear: bool) -> None:
    first = stream(
        event("ADDED", "a", 5),
        bookmark(10, initial_end=True),
        bookmark(20),
        event("ADDED", "b", 21),
        tear=tear,
    )
    async with reflecting(first, stream(event("ADDED", "c", 22), stay=True)) as harness:
        await harness.until_cached(a=5, b=21, c=22)
        query = harness.server.seen[1].query
        assert query["resourceVersion"] == "21"
        assert "sendInitialEvents" not in query


async def test_stream_resumes_from_version_of_bookmark() -> None:
    async with reflecting(stream(bookmark(10, initial_end=True), bookmark(99)), SILENT) as harness:
        await harness.until_requested(2)
        assert harness.server.seen[1].query["resourceVersion"] == "99"


@pytest.mark.parametrize(
    "expiry", [failure(410, "Expired"), stream(error(410, "Expired"))], ids=["as reply", "as event"]
)
async def test_expired_version_relists_and_removes_deleted(expiry: Answer) -> None:
    first = stream(event("ADDED", "a", 5), event("ADDED", "b", 6), bookmark(10, initial_end=True))
    again = stream(event("ADDED", "b", 6), bookmark(50, initial_end=True), stay=True)
    async with reflecting(first, expiry, again) as harness:
        await harness.until_cached(b=6)
        assert "sendInitialEvents" in harness.server.seen[2].query


@pytest.mark.parametrize("rejection", [failure(422, "Invalid"), failure(400, "BadRequest")])
async def test_server_without_streaming_lists_is_paged(rejection: Answer) -> None:
    listing = {
        "metadata": {"resourceVersion": "10"},
        "items": [{"metadata": {"name": "a", "resourceVersion": "5"}}],
    }
    async with reflecting(rejection, reply(listing), stream(event("ADDED", "b", 11), stay=True)) as harness:
        await harness.until_cached(a=5, b=11)
        assert harness.cache.synced.is_set()
        assert harness.server.seen[1].query_string == "limit=500"
        assert harness.server.seen[2].query["resourceVersion"] == "10"


async def test_watch_without_end_bookmark_falls_back_to_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "LIST_IDLE_TIMEOUT", 0.05)
    listing = {
        "metadata": {"resourceVersion": "10"},
        "items": [{"metadata": {"name": "a", "resourceVersion": "5"}}],
    }
    async with reflecting(stream(event("ADDED", "a", 5), stay=True), reply(listing), SILENT) as harness:
        await harness.until_cached(a=5)


@pytest.mark.parametrize("code", [429, 500])
async def test_stored_objects_that_server_cannot_read_are_named(code: int) -> None:
    """Kubernetes 1.37 refuses to watch if it cannot decode what an earlier version stored."""
    broken = failure(code, "", 'no kind "Pod" is registered')
    repaired = stream(event("ADDED", "a", 5), bookmark(9, initial_end=True), stay=True)
    async with reflecting(broken, broken, repaired) as harness:
        calls: list[str] = []
        harness.cache.on_synced_or_absent(lambda: calls.append(harness.cache.list_error))
        await harness.until_requested(2)
        assert 'no kind "Pod" is registered' in harness.cache.list_error
        assert not harness.cache.synced_or_absent.is_set()
        await harness.until_cached(a=5)
        assert harness.cache.list_error == ""
        assert harness.cache.synced_or_absent.is_set()
    assert [bool(reason) for reason in calls] == [True, False]


@pytest.mark.parametrize("fault", [failure(500), failure(503), failure(429), failure(403, "Forbidden")])
async def test_rejected_watch_is_retried(fault: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "SLOW_BACKOFF", FAST_BACKOFF)
    async with reflecting(
        fault, stream(event("ADDED", "a", 5), bookmark(9, initial_end=True), stay=True)
    ) as harness:
        await harness.until_cached(a=5)


async def test_problem_says_why_a_watch_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "SLOW_BACKOFF", FAST_BACKOFF)
    forbidden = failure(403, "Forbidden")
    async with reflecting(forbidden, SILENT) as harness:
        await harness.until_requested(2)
        assert "403 Forbidden" in harness.reflector.problem
        assert harness.reflector.forbidden
    recovered = stream(event("ADDED", "a", 5), bookmark(9, initial_end=True), stay=True)
    async with reflecting(forbidden, recovered) as harness:
        await harness.until_cached(a=5)
        assert harness.reflector.problem == ""
        assert not harness.reflector.forbidden


async def test_bug_is_the_problem_until_everything_is_listed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "AFTER_FAILURE", FAST_BACKOFF)
    listed = stream(event("ADDED", "a", 5), bookmark(9, initial_end=True), event("ADDED", "b", 10), stay=True)
    relisted = stream(event("ADDED", "c", 11), bookmark(12, initial_end=True), stay=True)
    async with reflecting(listed, relisted) as harness:
        problems: list[str] = []

        def fail(_kind: str, _new: Object) -> None:
            raise ZeroDivisionError("bug")

        def compact(new: Object) -> Object:
            problems.append(harness.reflector.problem)
            return new

        monkeypatch.setattr(harness.cache, "apply_event", fail)
        monkeypatch.setattr(harness.cache, "compact", compact)
        await harness.until_cached(c=11)
        assert list(dict.fromkeys(problems)) == ["", "bug"], "the list has begun, and is not complete yet"
        assert harness.reflector.problem == ""


async def test_repeated_watch_failure_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "SLOW_BACKOFF", FAST_BACKOFF)
    forbidden, overload = failure(403, "Forbidden"), failure(503)
    recovered = stream(event("ADDED", "a", 5), bookmark(9, initial_end=True))
    script = (forbidden, forbidden, overload, overload, recovered, overload, SILENT)
    with capture_logs() as logs:
        async with reflecting(*script) as harness:
            await harness.until_requested(7)
    interruptions = [line for line in logs if line["event"] == "watch interrupted"]
    assert [(line["log_level"], line["reason"].split("(")[1][:3]) for line in interruptions] == [
        ("warning", "403"),
        ("info", "503"),
        ("info", "503"),
    ]


async def test_undecodable_object_is_counted_and_skipped() -> None:
    counter = metrics.undecodable_total.labels("pods")
    before = counter._value.get()
    odd = event("ADDED", "odd", 6, labels="not a mapping")
    pieces = (
        event("ADDED", "a", 5),
        odd,
        b"{rubbish\n",
        bookmark(9, initial_end=True),
        odd,
        event("ADDED", "b", 10),
    )
    async with reflecting(stream(*pieces, stay=True)) as harness:
        await harness.until_cached(a=5, b=10)
    assert counter._value.get() == before + 3


async def test_line_in_many_chunks_is_one_event() -> None:
    whole = event("ADDED", "big", 5, annotations={"blob": "x" * 1_500_000}) + bookmark(9, initial_end=True)
    pieces = [whole[i : i + 70_001] for i in range(0, len(whole), 70_001)]
    async with reflecting(stream(*pieces, stay=True)) as harness:
        await harness.until_cached(big=5)


async def test_resource_not_served_is_waited_for() -> None:
    crd_waiter = FakeCrdWaiter()
    script = (
        failure(404, "NotFound"),
        stream(event("ADDED", "a", 5), bookmark(9, initial_end=True), stay=True),
    )
    async with reflecting(*script, crd_waiter=crd_waiter) as harness:
        async with asyncio.timeout(60):
            await harness.cache.synced_or_absent.wait()
        assert not harness.cache.synced.is_set()
        assert len(harness.server.seen) == 1
        crd_waiter.arrived.set()
        await harness.until_cached(a=5)
        assert harness.cache.synced.is_set()


async def test_resource_no_longer_served_clears_cache() -> None:
    script = (stream(event("ADDED", "a", 5), bookmark(9, initial_end=True)), failure(404, "NotFound"))
    async with reflecting(*script, crd_waiter=FakeCrdWaiter()) as harness:
        await harness.until_cached(a=5)
        await harness.until_cached()
        assert not harness.cache.synced.is_set()


class ServedLater:
    """A server that serves a resource after an hour."""

    def __init__(self, code: int, reason: str) -> None:
        self.code, self.reason = code, reason
        self.headers: dict[str, str] = {}

    @property
    def status(self) -> int:
        return self.code if asyncio.get_running_loop().time() < 3600.0 else 200

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ServedLater]:
        yield self

    async def chunks(self) -> AsyncIterator[bytes]:
        if self.status >= 300:
            yield msgspec.json.encode({"kind": "Status", "code": self.code, "reason": self.reason})
            return
        yield bookmark(9, initial_end=True)
        await asyncio.Event().wait()

    async def send(self, request: Request) -> Response:
        raise AssertionError(request)

    async def close(self) -> None: ...


@pytest.mark.parametrize(("code", "reason"), [(404, "NotFound"), (403, "Forbidden")])
def test_resource_served_later_is_found_within_backoff(code: int, reason: str) -> None:
    """Without a watch on CRDs the reflector can only try again, with a back-off that users can wait for."""

    async def play() -> float:
        cache = Cache(PODS, Object)
        task = asyncio.create_task(Reflector(Client(ServedLater(code, reason)), cache, seed=1).run())
        await cache.synced.wait()
        task.cancel()
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(play()) < 3600.0 + 16.0


async def test_line_batches_join_chunks_and_drop_incomplete_line() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for chunk in (b"a", b"b\nc\n\n", b"d", b"e", b"f\ng"):
            yield chunk

    assert [batch async for batch in line_batches(chunks())] == [[b"ab", b"c"], [b"def"]]


def test_error_event_raises_even_if_it_fits_the_type() -> None:
    with pytest.raises(Gone, match="watch pods: too old"):
        EventDecoder(Object, PODS).decode(error(410, "Expired"))


def test_bookmark_is_decoded_even_if_type_does_not_fit() -> None:
    strict = msgspec.defstruct("Strict", [("metadata", dict), ("spec", dict)])
    assert EventDecoder(strict, PODS).decode(bookmark(7, initial_end=True)) == Bookmark("7", True)
