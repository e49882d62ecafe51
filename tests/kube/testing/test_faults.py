"""The transport with faults: the effect of each kind of fault, and that a seed repeats them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec
import pytest

from grove.kube.client.client import Client, Object
from grove.kube.client.resource import PODS, SERVICES
from grove.kube.client.retry import NO_RETRY
from grove.kube.client.transport import Request, Response, Stream
from grove.kube.errors import Conflict, InternalError, LostReply, TooManyRequests
from grove.kube.testing.faults import FaultRates, FaultyTransport, ProcessStopped

WATCH = Request("GET", "/x", "watch", "pods")


def line(kind: str, name: str, version: int) -> bytes:
    body = {"type": kind, "object": {"metadata": {"name": name, "resourceVersion": str(version)}}}
    return msgspec.json.encode(body) + b"\n"


class RecordedTransport:
    """A transport that accepts every write and sends the same watch each time."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, *lines: bytes) -> None:
        self.lines = lines
        self.done: list[str] = []

    async def send(self, request: Request) -> Response:
        self.done.append(f"{request.verb} {request.name}".strip())
        return Response(201, {}, b'{"metadata": {}}')

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        yield self

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b"".join(self.lines)

    async def close(self) -> None: ...


ABC = (line("ADDED", "a", 1), line("ADDED", "b", 2), line("ADDED", "c", 3))


async def watched_chunks(faulty: FaultyTransport) -> list[bytes]:
    """Every chunk of a watch until its end or its fault, which is `broken`."""
    chunks = []
    async with faulty.stream(WATCH) as stream:
        try:
            async for chunk in stream.chunks():
                chunks.append(chunk)  # noqa: PERF401 - what came before a fault counts
        except LostReply:
            chunks.append(b"broken")
    return chunks


def create(client: Client) -> asyncio.Task[Object]:
    return asyncio.create_task(client.create(PODS, {}, namespace="n", as_type=Object))


@pytest.mark.parametrize(
    ("fault", "error"), [("conflict", Conflict), ("throttle", TooManyRequests), ("error", InternalError)]
)
async def test_rejected_write_does_not_take_effect(fault: str, error: type[Exception]) -> None:
    recorded = RecordedTransport()
    faulty = FaultyTransport(recorded)
    client = Client(faulty, retry=NO_RETRY)
    faulty.inject(fault, resource="pods", verb="create")  # type: ignore[arg-type]
    with pytest.raises(error):
        await create(client)
    await create(client)
    assert recorded.done == ["create"]
    assert faulty.fault_counts == {fault: 1}


async def test_write_with_lost_reply_takes_effect() -> None:
    recorded = RecordedTransport()
    faulty = FaultyTransport(recorded)
    faulty.inject("lose", verb="create")
    with pytest.raises(LostReply) as caught:
        await create(Client(faulty))
    assert caught.value.ambiguous
    assert recorded.done == ["create"]


async def test_reads_have_only_injected_faults() -> None:
    faulty = FaultyTransport(RecordedTransport(), rates=FaultRates(conflict=1, throttle=1, error=1, lose=1))
    client = Client(faulty, retry=NO_RETRY)
    await client.get(PODS, "a", namespace="n", as_type=Object)
    assert not faulty.fault_counts
    faulty.inject("lose", resource="pods", verb="get")
    with pytest.raises(LostReply):
        await client.get(PODS, "a", namespace="n", as_type=Object)
    await client.get(PODS, "a", namespace="n", as_type=Object)


async def test_process_stops_after_its_nth_write() -> None:
    recorded = RecordedTransport(*ABC)
    stopped = []
    faulty = FaultyTransport(recorded, stop_after_writes=2, on_stop=lambda: stopped.append(True))
    client = Client(faulty)
    await create(client)
    with pytest.raises(ProcessStopped, match="after write 2"):
        await create(client)
    for attempt in (create(client), asyncio.create_task(watched_chunks(faulty))):
        with pytest.raises(ProcessStopped, match="start another"):
            await attempt
    assert recorded.done == ["create", "create"]
    assert stopped == [True]


async def test_duplicate_fault_repeats_an_event() -> None:
    faulty = FaultyTransport(RecordedTransport(*ABC))
    faulty.inject("duplicate", name="b")
    assert await watched_chunks(faulty) == [ABC[0], ABC[1], ABC[1], ABC[2]]


async def test_reorder_fault_swaps_events_of_different_objects() -> None:
    faulty = FaultyTransport(RecordedTransport(*ABC))
    faulty.inject("reorder", name="b")
    assert await watched_chunks(faulty) == [ABC[1] + ABC[0], ABC[2]]


async def test_events_of_one_object_are_never_swapped() -> None:
    recorded = RecordedTransport(line("ADDED", "a", 1), line("DELETED", "a", 2))
    assert await watched_chunks(FaultyTransport(recorded, rates=FaultRates(reorder=1))) == list(
        recorded.lines
    )


async def test_cut_fault_ends_in_the_middle_of_a_line() -> None:
    faulty = FaultyTransport(RecordedTransport(*ABC))
    faulty.inject("cut", name="b", verb="ADDED")
    first, incomplete, end = await watched_chunks(faulty)
    assert (first, end) == (ABC[0], b"broken")
    assert ABC[1].startswith(incomplete)
    assert b"\n" not in incomplete
    assert await watched_chunks(faulty) == list(ABC), "the server still has all versions"


async def test_dropped_event_is_followed_by_410() -> None:
    faulty = FaultyTransport(RecordedTransport(*ABC))
    faulty.inject("drop", name="b")
    assert await watched_chunks(faulty) == [ABC[0], b"broken"]
    async with faulty.stream(WATCH) as stream:
        assert stream.status == 410
    assert await watched_chunks(faulty) == list(ABC)


async def test_delayed_event_is_delivered() -> None:
    faulty = FaultyTransport(RecordedTransport(*ABC), rates=FaultRates(delay=1, longest_delay=0.001))
    assert await watched_chunks(faulty) == list(ABC)
    assert faulty.fault_counts == {"delay": 3}


async def test_bookmarks_have_no_faults() -> None:
    recorded = RecordedTransport(line("BOOKMARK", "", 9))
    faulty = FaultyTransport(recorded, rates=FaultRates(drop=1, cut=1, duplicate=1, delay=1, reorder=1))
    assert await watched_chunks(faulty) == list(recorded.lines)


async def test_paused_watch_holds_back_its_resource_only() -> None:
    faulty = FaultyTransport(RecordedTransport(*ABC))
    client = Client(faulty)
    faulty.pause_watch("pods")
    watching = asyncio.create_task(watched_chunks(faulty))
    listing = asyncio.create_task(client.list(PODS, as_type=Object))
    await client.list(SERVICES, as_type=Object)
    await create(client)
    assert not watching.done()
    assert not listing.done()
    faulty.resume_watch("pods")
    assert await watching == list(ABC)
    await listing


async def test_same_seed_gives_same_faults_in_any_task_order() -> None:
    async def outcomes(seed: int, names: list[str]) -> dict[str, str]:
        client = Client(
            FaultyTransport(RecordedTransport(), seed=seed, rates=FaultRates(conflict=0.3, lose=0.3)),
            retry=NO_RETRY,
        )

        async def one(name: str) -> tuple[str, str]:
            try:
                await client.patch(PODS, name, {}, namespace="n", as_type=Object)
            except (Conflict, LostReply) as error:
                return name, type(error).__name__
            return name, "done"

        return dict(await asyncio.gather(*(one(name) for name in names)))

    names = [f"pod-{number}" for number in range(60)]
    first = await outcomes(7, names)
    assert first == await outcomes(7, names[::-1])
    assert first != await outcomes(8, names)
    assert set(first.values()) == {"Conflict", "LostReply", "done"}


def test_unknown_fault_is_rejected() -> None:
    with pytest.raises(ValueError, match="choose one of conflict"):
        FaultyTransport(RecordedTransport()).inject("flood")  # type: ignore[arg-type]
