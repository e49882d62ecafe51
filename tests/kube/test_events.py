"""EventRecorder: one event per note, a series for repetitions, bounded memory, no waiting."""

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
from tests.kube.executor.stub_transport import Answer, StubTransport, created_reply, refused

START = datetime(2026, 1, 1, tzinfo=UTC)


def created(name: str, note: str = "", **more: Any) -> EventRecord:
    regarding = ObjectRef("grove.io/v1alpha1", "PodCliqueSet", "web", "prod", "u1")
    return EventRecord(regarding, "PodCliqueCreateSuccessful", note or f"{name} created", "Create", **more)


def started_recorder(replies: StubTransport, **settings: Any) -> EventRecorder:
    loop = asyncio.get_running_loop()
    recorder = EventRecorder(
        Client(replies, retry=NO_RETRY),
        "podcliqueset-controller",
        "operator-1",
        wall_clock=lambda: START + timedelta(seconds=loop.time()),
        **settings,
    )
    recorder.start()
    return recorder


def dropped() -> float:
    return REGISTRY.get_sample_value("grove_kube_events_dropped_total") or 0.0


@virtual_time
async def test_events_with_different_notes_are_two_events() -> None:
    events = started_recorder(replies := StubTransport(created_reply))
    events.record(created("web-0"))
    events.record(created("web-1"))
    await asyncio.sleep(1)
    assert sorted(sent.body["note"] for sent in replies.sent) == ["web-0 created", "web-1 created"]
    names = {sent.body["metadata"]["name"] for sent in replies.sent}
    assert len(names) == 2
    assert all(name.startswith("web.") for name in names)


@virtual_time
async def test_event_has_all_fields_of_the_api() -> None:
    events = started_recorder(replies := StubTransport(created_reply))
    events.record(created("web-0", warning=True, reporter="podclique-controller"))
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
        "reportingController": "podclique-controller",
        "reportingInstance": "operator-1",
    }
    assert (plain["type"], plain["reportingController"]) == ("Normal", "podcliqueset-controller")


@virtual_time
async def test_repeated_event_is_a_series_patched_per_interval() -> None:
    events = started_recorder(replies := StubTransport(created_reply), interval=30.0)
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
async def test_repetition_after_series_timeout_is_a_new_event() -> None:
    events = started_recorder(replies := StubTransport(created_reply), series_timeout=60.0)
    events.record(created("web-0"))
    await asyncio.sleep(61)
    events.record(created("web-0"))
    await asyncio.sleep(61)
    assert [sent.request.verb for sent in replies.sent] == ["create", "create"]
    assert "series" not in replies.sent[1].body


@virtual_time
async def test_series_of_expired_event_is_created_again() -> None:
    def answer(request: Request) -> Answer:
        return refused(404, "NotFound") if request.verb == "patch" else created_reply(request)

    events = started_recorder(replies := StubTransport(answer), interval=30.0)
    events.record(created("web-0"))
    await asyncio.sleep(1)
    events.record(created("web-0"))
    await asyncio.sleep(60)
    assert [sent.request.verb for sent in replies.sent] == ["create", "patch", "create"]
    assert replies.sent[2].body["series"]["count"] == 2


@virtual_time
async def test_series_are_bounded_while_server_is_unreachable() -> None:
    away = True
    before = dropped()
    events = started_recorder(
        replies := StubTransport(lambda request: ConnectError("down") if away else created_reply(request)),
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
async def test_dropped_series_leave_the_queue() -> None:
    events = started_recorder(StubTransport(created_reply, latency=lambda _: 1000.0), max_series=10)
    for number in range(100):
        events.record(created(f"web-{number}"))
        await asyncio.sleep(0)  # the first ones are being published, which does not end
    assert (REGISTRY.get_sample_value("grove_kube_queue_depth", {"queue": "events"}) or 0) <= 10


@virtual_time
async def test_most_recent_series_are_kept() -> None:
    events = started_recorder(replies := StubTransport(created_reply), max_series=2)
    for name in ("often", "once", "often", "late", "often"):
        events.record(created(name))
        await asyncio.sleep(1)
    await asyncio.sleep(60)
    published = [sent.body["note"] for sent in replies.sent if sent.request.verb == "create"]
    assert published == ["often created", "once created", "late created"]


@virtual_time
async def test_rejected_event_is_dropped_and_counted_once() -> None:
    before = dropped()
    events = started_recorder(replies := StubTransport(lambda _: refused(403, "Forbidden")))
    events.record(created("web-0"))
    await asyncio.sleep(600)
    assert len(replies.sent) == 1
    assert dropped() - before == 1


@virtual_time
async def test_event_that_cannot_be_encoded_is_dropped_once() -> None:
    before = dropped()
    events = started_recorder(replies := StubTransport(created_reply))
    owner = Create(Target("v1", "Pod", "p", "prod"), {})
    events.record(
        EventRecord(ObjectRef("v1", "Pod", "p", "prod", uid_of(owner)), "Created", "created", "Create")
    )
    await asyncio.sleep(600)
    assert replies.sent == []
    assert dropped() - before == 1


@virtual_time
async def test_close_publishes_the_rest_within_grace() -> None:
    events = started_recorder(replies := StubTransport(created_reply), interval=30.0)
    events.record(created("web-0"))
    await asyncio.sleep(1)
    events.record(created("web-0"))
    events.record(created("web-1"))
    await events.close(grace=2.0)
    assert sorted(sent.request.verb for sent in replies.sent) == ["create", "create", "patch"]

    stuck = started_recorder(StubTransport(created_reply, latency=lambda _: 1000.0))
    stuck.record(created("web-0"))
    began = asyncio.get_running_loop().time()
    await stuck.close(grace=2.0)
    assert asyncio.get_running_loop().time() - began <= 5.0


@pytest.mark.parametrize("note", ["x" * 2000, "ä" * 1000])
def test_long_note_is_cut_between_characters(note: str) -> None:
    @virtual_time
    async def run() -> None:
        events = started_recorder(replies := StubTransport(created_reply))
        events.record(created("", note=note))
        await asyncio.sleep(1)
        published = replies.sent[0].body["note"]
        assert len(published.encode()) <= 1024
        assert note.startswith(published.removesuffix("…"))

    run()


@virtual_time
async def test_event_of_cluster_scoped_object_is_in_default() -> None:
    events = started_recorder(replies := StubTransport(created_reply))
    events.record(EventRecord(ObjectRef("v1", "Node", "n" * 253, uid="u"), "Seen", "seen", "See"))
    await asyncio.sleep(1)
    assert replies.sent[0].body["metadata"]["namespace"] == "default"
    assert len(replies.sent[0].body["metadata"]["name"]) == 253


@virtual_time
async def test_event_in_terminating_namespace_is_not_a_warning() -> None:
    cause = {"reason": "NamespaceTerminating", "message": "it is terminating", "field": "metadata.namespace"}
    body = {"kind": "Status", "code": 403, "reason": "Forbidden", "details": {"causes": [cause]}}
    events = started_recorder(StubTransport(lambda _: Response(403, {}, msgspec.json.encode(body))))
    before = dropped()
    with capture_logs() as logs:
        events.record(created("web-0"))
        await asyncio.sleep(1)
    assert dropped() == before + 1
    assert [line["log_level"] for line in logs] == ["debug"]
