"""The results of failed writes: the object is read where the outcome is uncertain, and only there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grove.api.intents import Create, Delete, Intent, Patch, Status
from grove.kube.client.transport import Request, Response
from grove.kube.errors import ConnectError, KubeError, LostReply, UnknownOutcome
from grove.kube.executor.name_conflict import NameConflict
from grove.kube.testing.virtual_time import virtual_time
from tests.kube.executor.plans import RecordingStore, create, executor, pod, states
from tests.kube.executor.stub_transport import Answer, StubTransport, refused


def existing(owner_uid: str, owner_name: str = "owner", **metadata: Any) -> Response:
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner_name,
        "uid": owner_uid,
        "controller": True,
    }
    stored = {"name": "a", "uid": "there", "ownerReferences": [reference], **metadata}
    return Response(200, {}, msgspec.json.encode({"metadata": stored}))


TAKEN = refused(409, "AlreadyExists", name="a")
MISSING = refused(404, "NotFound", name="a", kind="pods")


@pytest.mark.parametrize(
    ("write", "read", "state", "error", "kept"),
    [
        (TAKEN, existing("u1"), "found", None, True),
        (TAKEN, existing("u1", deletionTimestamp="2026-01-01T00:00:00Z"), "waiting", None, True),
        (TAKEN, existing("u0"), "waiting", None, True),
        (TAKEN, existing("u1", "other"), "failed", NameConflict, False),
        (TAKEN, MISSING, "conflict", None, False),
        (TAKEN, refused(403, "Forbidden"), "failed", KubeError, False),
        (LostReply("cut"), existing("u1"), "found", None, True),
        (LostReply("cut"), existing("u1", "other"), "failed", NameConflict, False),
        (LostReply("cut"), MISSING, "failed", LostReply, False),
    ],
)
def test_failed_create_reads_the_existing_object(
    write: Answer, read: Response, state: str, error: type[Exception] | None, kept: bool
) -> None:
    @virtual_time
    async def run() -> None:
        store = RecordingStore()
        replies = StubTransport(lambda request: write if request.is_write else read)
        first = create("a", owner="u1")
        outcome = await executor(replies, store).execute([first, create("b", first)])
        assert states(outcome) == [state, "skipped"]
        assert outcome.failed == (error is not None)
        if error:
            assert isinstance(outcome.errors[0], error)
        assert (list(store.known) == ["a"]) == kept
        assert [sent.request.verb for sent in replies.sent] == ["create", "get"]

    run()


@virtual_time
async def test_terminating_object_not_cached_is_a_conflict() -> None:
    terminating = existing("u1", deletionTimestamp="2026-01-01T00:00:00Z")
    replies = StubTransport(lambda request: TAKEN if request.is_write else terminating)
    outcome = await executor(replies, RecordingStore(holds=False)).execute([create("a", owner="u1")])
    assert states(outcome) == ["conflict"]
    assert outcome.outdated


PRECONDITION = {"metadata": {"resourceVersion": "7", "uid": "there"}}
"""A patch that changes nothing, and checks whether the object is unchanged."""
SEEN = existing("x", resourceVersion="7")
TERMINATING = existing("x", deletionTimestamp="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("intent", "write", "read", "state"),
    [
        (Delete(pod("a"), uid="there"), MISSING, None, "done"),
        (Delete(pod("a"), uid="there"), LostReply("cut"), MISSING, "done"),
        (Delete(pod("a"), uid="there"), LostReply("cut"), TERMINATING, "done"),
        (Delete(pod("a"), uid="before"), LostReply("cut"), existing("x"), "done"),
        (Delete(pod("a"), uid="there"), LostReply("cut"), existing("x"), "failed"),
        (Delete(pod("a"), uid="before"), refused(409, "Conflict"), existing("x"), "conflict"),
        (Patch(pod("a"), {}), refused(409, "Conflict"), existing("x"), "conflict"),
        (Patch(pod("a"), {}), MISSING, None, "conflict"),
        (Patch(pod("a"), {}), refused(404, "NotFound"), None, "failed"),  # no such kind
        (Patch(pod("a"), PRECONDITION), LostReply("cut"), SEEN, "done"),
        (Patch(pod("a"), PRECONDITION), LostReply("cut"), existing("x", resourceVersion="8"), "failed"),
        (Patch(pod("a"), PRECONDITION), LostReply("cut"), MISSING, "failed"),
        (Patch(pod("a"), PRECONDITION | {"spec": {}}), LostReply("cut"), SEEN, "failed"),
        (Status(pod("a"), {}), LostReply("cut"), existing("x"), "failed"),
        (Status(pod("a"), {}), refused(500, "InternalError"), existing("x"), "failed"),
        (Patch(pod("a"), {}), refused(422, "Invalid"), None, "failed"),
        (Create(pod("a"), {}, may_exist=True), TAKEN, None, "done"),
        (Create(pod("a"), {}, write_only=True, may_exist=True), TAKEN, None, "done"),
        (Create(pod("a"), {}, write_only=True), TAKEN, None, "conflict"),
        (Create(pod("a"), {}, write_only=True), LostReply("cut"), None, "conflict"),
        (Create(pod("a"), {}, write_only=True), refused(403, "Forbidden"), None, "failed"),
    ],
)
def test_failed_write_is_read_only_if_needed(
    intent: Intent, write: Answer, read: Response | None, state: str
) -> None:
    @virtual_time
    async def run() -> None:
        store = RecordingStore()

        def answer(request: Request) -> Answer:
            if request.is_write:
                return write
            assert read is not None, "a read is not expected"
            return read

        outcome = await executor(replies := StubTransport(answer), store).execute([intent])
        assert states(outcome) == [state]
        assert len(replies.sent) == (1 if read is None else 2)
        assert ("a" in store.known) == (read is not None and read.status == 200)
        missing = MISSING in (write, read) and isinstance(intent, Delete)
        assert store.lost == ([("a", "there")] if missing else [])

    run()


@pytest.mark.parametrize(
    "intent",
    [
        create("a", owner="u1"),
        Delete(pod("a"), uid="there"),
        Patch(pod("a"), {"metadata": {"resourceVersion": "7"}, "spec": {}}),
        Status(pod("a"), {"metadata": {"resourceVersion": "7"}, "status": {}}),
    ],
)
@pytest.mark.parametrize(
    "read", [ConnectError("down"), LostReply("cut"), refused(503, "ServiceUnavailable"), refused(429, "")]
)
def test_outcome_is_unknown_after_four_failed_reads(intent: Intent, read: Answer) -> None:
    @virtual_time
    async def run() -> None:
        store = RecordingStore()
        replies = StubTransport(lambda request: LostReply("cut") if request.is_write else read)
        outcome = await executor(replies, store).execute([intent, create("b", intent)])
        assert states(outcome) == ["failed", "skipped"]
        assert isinstance(outcome.errors[0], UnknownOutcome)
        assert [unknown.intent for unknown in outcome.unknown_writes] == [intent]
        assert [sent.request.verb for sent in replies.sent[1:]] == ["get"] * 4
        assert not store.known

    run()


@virtual_time
async def test_delete_stores_terminating_or_deleted_object() -> None:
    answers = {
        "terminating": TERMINATING,
        "gone": Response(200, {}, b'{"kind":"Status","status":"Success"}'),
        "at-once": existing("x"),
    }
    store = RecordingStore()
    replies = StubTransport(lambda request: answers[request.name])
    await executor(replies, store).execute([Delete(pod(name), uid="there") for name in answers])
    assert list(store.known) == ["a"]
    assert set(store.lost) == {("gone", "there"), ("at-once", "there")}
