"""Events: one per thing that happened, series for repeats, bounded, and never in the way."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from grove.api.intents import Create, EventRecord, ObjectRef, Target, uid_of
from grove.kube.client.client import Client
from grove.kube.client.retry import NO_RETRY
from grove.kube.client.transport import Request, Response
from grove.kube.errors import ConnectError
from grove.kube.events import EventRecorder
from grove.kube.testing.virtual_time import virtual_time
from tests.kube.executor.stub_transport import Answer, StubTransport, made, refused

START = datetime(2026, 1, 1, tzinfo=UTC)


def created(name: str, note: str = "", **more: Any) -> EventRecord:
    regarding = ObjectRef("grove.io/v1alpha1", "PodCliqueSet", "web", "prod", "u1")
    return EventRecord(regarding, "PodCliqueCreateSuccessful", note or f"{name} created", "Create", **more)


def recorder(replies: StubTransport, **settings: Any) -> EventRecorder:
    loop = asyncio.get_running_loop()
    made = EventRecorder(
        Client(replies, retry=NO_RETRY),
        "podcliqueset-controller",
        "operator-1",
        wall_clock=lambda: START + timedelta(seconds=loop.time()),
        **settings,
    )
    made.start()
    return made


def dropped() -> float:
    return REGISTRY.get_sample_value("grove_kube_events_dropped_total") or 0.0


@virtual_time
async def test_things_that_differ_only_in_their_note_are_two_events() -> None:
    events = recorder(replies := StubTransport(made))
    events.record(created("web-0"))
    events.record(created("web-1"))
    await asyncio.sleep(1)
    assert sorted(sent.body["note"] for sent in replies.sent) == ["web-0 created", "web-1 created"]
    names = {sent.body["metadata"]["name"] for sent in replies.sent}
    assert len(names) == 2
    assert all(name.startswith("web.") for name in names)


@virtual_time
async def test_an_event_carries_what_the_api_and_people_want_to_know() -> None:
    events = recorder(replies := StubTransport(made))
    pod = ObjectRef("v1", "Pod", "web-0-x", "prod", "u2")
    events.record(created("web-0", warning=True, related=pod, reporter="podclique-controller"))
    events.record(created("web-1"))
    await asyncio.sleep(1)
    full, plain = (sent.body for sent in replies.sent)
    del full["metadata"]["name"]
    assert full == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "prod"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Warning",
        "reason": "PodCliqueCreateSuccessful",
        "action": "Create",
        "note": "web-0 created",
        "regarding": {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueSet",
            "name": "web",
            "namespace": "prod",
            "uid": "u1",
        },
        "related": {"apiVersion": "v1", "kind": "Pod", "name": "web-0-x", "namespace": "prod", "uid": "u2"},
        "reportingController": "podclique-controller",
        "reportingInstance": "operator-1",
    }
    assert (plain["type"], plain["reportingController"]) == ("Normal", "podcliqueset-controller")


@virtual_time
async def test_a_repeated_event_becomes_a_series_that_is_told_now_and_then() -> None:
    events = recorder(replies := StubTransport(made), interval=30.0)
    for _ in range(100):
        events.record(created("web-0"))
        await asyncio.sleep(1)
    await asyncio.sleep(60)
    first, *more = replies.sent
    assert [sent.request.verb for sent in more] == ["patch"] * 4
    assert all(sent.request.name == first.body["metadata"]["name"] for sent in more)
    assert [sent.body["series"]["count"] for sent in more] == [31, 61, 91, 100]
    assert more[-1].body["series"]["lastObservedTime"] == "2026-01-01T00:01:39.000000Z"


@virtual_time
async def test_after_a_quiet_time_the_same_occurrence_is_a_new_event() -> None:
    events = recorder(replies := StubTransport(made), series_timeout=60.0)
    events.record(created("web-0"))
    await asyncio.sleep(61)
    events.record(created("web-0"))
    await asyncio.sleep(61)
    assert [sent.request.verb for sent in replies.sent] == ["create", "create"]
    assert "series" not in replies.sent[1].body


@virtual_time
async def test_a_series_whose_event_the_server_forgot_begins_anew() -> None:
    def answer(request: Request) -> Answer:
        return refused(404, "NotFound") if request.verb == "patch" else made(request)

    events = recorder(replies := StubTransport(answer), interval=30.0)
    events.record(created("web-0"))
    await asyncio.sleep(1)
    events.record(created("web-0"))
    await asyncio.sleep(60)
    assert [sent.request.verb for sent in replies.sent] == ["create", "patch", "create"]
    assert replies.sent[2].body["series"]["count"] == 2


@virtual_time
async def test_while_the_server_is_away_memory_is_bounded_and_drops_are_counted() -> None:
    away = True
    before = dropped()
    events = recorder(
        replies := StubTransport(lambda request: ConnectError("down") if away else made(request)),
        max_series=10,
    )
    for number in range(100):
        events.record(created(f"web-{number}"))
    await asyncio.sleep(60)
    assert dropped() - before == 90
    away = False
    await asyncio.sleep(120)
    published = {sent.body["note"] for sent in replies.sent if sent.ended > 60}
    assert published == {f"web-{number} created" for number in range(90, 100)}


@virtual_time
async def test_what_is_forgotten_takes_no_place_in_the_queue_either() -> None:
    events = recorder(StubTransport(made, latency=lambda _: 1000.0), max_series=10)
    for number in range(100):
        events.record(created(f"web-{number}"))
        await asyncio.sleep(0)  # the first ones are being told, and the telling does not end
    assert (REGISTRY.get_sample_value("grove_kube_queue_depth", {"queue": "events"}) or 0) <= 10


@virtual_time
async def test_what_happens_often_is_remembered_longest() -> None:
    events = recorder(replies := StubTransport(made), max_series=2)
    for name in ("often", "once", "often", "late", "often"):
        events.record(created(name))
        await asyncio.sleep(1)
    await asyncio.sleep(60)
    published = [sent.body["note"] for sent in replies.sent if sent.request.verb == "create"]
    assert published == ["often created", "once created", "late created"]


@virtual_time
async def test_what_the_server_refuses_is_dropped_and_counted_once() -> None:
    before = dropped()
    events = recorder(replies := StubTransport(lambda _: refused(403, "Forbidden")))
    events.record(created("web-0"))
    await asyncio.sleep(600)
    assert len(replies.sent) == 1
    assert dropped() - before == 1


@virtual_time
async def test_what_cannot_be_put_into_words_is_dropped_and_counted_once() -> None:
    before = dropped()
    events = recorder(replies := StubTransport(made))
    owner = Create(Target("v1", "Pod", "p", "prod"), {})
    events.record(EventRecord(ObjectRef("v1", "Pod", "p", "prod", uid_of(owner)), "Made", "made", "Make"))
    await asyncio.sleep(600)
    assert replies.sent == []
    assert dropped() - before == 1


@virtual_time
async def test_closing_tells_what_is_untold_but_does_not_wait_for_ever() -> None:
    events = recorder(replies := StubTransport(made), interval=30.0)
    events.record(created("web-0"))
    await asyncio.sleep(1)
    events.record(created("web-0"))
    events.record(created("web-1"))
    await events.close(grace=2.0)
    assert sorted(sent.request.verb for sent in replies.sent) == ["create", "create", "patch"]

    stuck = recorder(StubTransport(made, latency=lambda _: 1000.0))
    stuck.record(created("web-0"))
    began = asyncio.get_running_loop().time()
    await stuck.close(grace=2.0)
    assert asyncio.get_running_loop().time() - began <= 5.0


@pytest.mark.parametrize("note", ["x" * 2000, "ä" * 1000])
def test_a_note_that_is_too_long_is_cut_between_characters(note: str) -> None:
    @virtual_time
    async def run() -> None:
        events = recorder(replies := StubTransport(made))
        events.record(created("", note=note))
        await asyncio.sleep(1)
        published = replies.sent[0].body["note"]
        assert len(published.encode()) <= 1024
        assert note.startswith(published.removesuffix("…"))

    run()


@virtual_time
async def test_events_of_cluster_wide_objects_live_in_the_default_namespace() -> None:
    events = recorder(replies := StubTransport(made))
    events.record(EventRecord(ObjectRef("v1", "Node", "n" * 253, uid="u"), "Seen", "seen", "See"))
    await asyncio.sleep(1)
    assert replies.sent[0].body["metadata"]["namespace"] == "default"
    assert len(replies.sent[0].body["metadata"]["name"]) == 253


@virtual_time
async def test_in_a_namespace_that_ends_an_event_is_let_go_without_a_word() -> None:
    cause = {"reason": "NamespaceTerminating", "message": "it ends", "field": "metadata.namespace"}
    body = {"kind": "Status", "code": 403, "reason": "Forbidden", "details": {"causes": [cause]}}
    events = recorder(StubTransport(lambda _: Response(403, {}, msgspec.json.encode(body))))
    before = dropped()
    with capture_logs() as said:
        events.record(created("web-0"))
        await asyncio.sleep(1)
    assert dropped() == before + 1
    assert [line["log_level"] for line in said] == ["debug"]
