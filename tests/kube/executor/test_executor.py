"""The executor: order of intents, deferred values, limits, retries, timeouts and leadership."""

from __future__ import annotations

import asyncio

import pytest

from grove.api.intents import (
    Create,
    Delete,
    Intent,
    Patch,
    PatchType,
    Status,
    Target,
    derived,
    uid_of,
)
from grove.kube.client.transport import Request
from grove.kube.errors import ConnectError, Forbidden, TooManyRequests
from grove.kube.executor.executor import Executor
from grove.kube.executor.write_limiter import LimitBounds, WriteLimiter
from grove.kube.leader.leadership import FencedTransport, Leadership, LeadershipLost
from grove.kube.testing.virtual_time import virtual_time
from tests.kube.executor.plans import RESOURCES, RecordingStore, create, executor, pod, states
from tests.kube.executor.stub_transport import Answer, StubTransport, created_reply, refused


@virtual_time
async def test_deferred_names_and_owners_come_from_replies() -> None:
    def member(uid: str, index: int) -> str:
        return f"{uid}.{index}"

    owner = Create(Target("v1", "ConfigMap", "clique", "n"), {"metadata": {"name": "clique"}})
    names = [derived(member, uid_of(owner), index) for index in range(2)]
    gang = Create(
        Target("v1", "Service", "gang", "n"), {"metadata": {"name": "gang"}, "members": names}, (owner.id,)
    )
    pods = [
        Create(pod(name), {"metadata": {"name": name}, "owner": uid_of(owner)}, (owner.id, gang.id))
        for name in names
    ]
    replies = StubTransport(created_reply)
    store = RecordingStore()
    outcome = await executor(replies, store).execute([owner, gang, *pods])
    assert states(outcome) == ["done"] * 4
    sent = [sent.body for sent in replies.sent]
    assert sent[1]["members"] == ["uid-clique.0", "uid-clique.1"]
    assert [(body["metadata"]["name"], body["owner"]) for body in sent[2:]] == [
        ("uid-clique.0", "uid-clique"),
        ("uid-clique.1", "uid-clique"),
    ]
    assert outcome.results[3].name == "uid-clique.1"
    assert [outcome.resolve(text) for text in (*names, uid_of(owner), "known")] == [
        "uid-clique.0",
        "uid-clique.1",
        "uid-clique",
        "known",
    ]
    assert set(store.known) == {"clique", "gang", "uid-clique.0", "uid-clique.1"}


@virtual_time
async def test_independent_intents_run_in_parallel_within_limit() -> None:
    replies = StubTransport(created_reply, latency=lambda _: 0.5)
    outcome = await executor(replies, slots=8).execute([create(f"p{i}") for i in range(24)])
    assert states(outcome) == ["done"] * 24
    assert replies.most_in_flight == 8
    assert asyncio.get_running_loop().time() == pytest.approx(1.5)


@virtual_time
async def test_chain_of_intents_starts_no_task() -> None:
    tasks: list[int] = []

    def answer(request: Request) -> Answer:
        tasks.append(len(asyncio.all_tasks()))
        return created_reply(request)

    first = create("a")
    second = create("b", first)
    await executor(StubTransport(answer)).execute([first, second, create("c", second)])
    assert tasks == [1, 1, 1]


@virtual_time
async def test_creates_go_before_independent_statuses() -> None:
    required = Status(pod("required"), {"status": {}})
    status = Status(pod("report"), {"status": {}})
    creates = [create(f"p{i}") for i in range(3)]
    victim = Delete(pod("victim"), after=(required.id,))
    replies = StubTransport(created_reply)
    await executor(replies, slots=2).execute([status, required, *creates, victim])
    order = [sent.request.name or sent.body["metadata"]["name"] for sent in replies.sent]
    assert order == ["required", "p0", "p1", "p2", "victim", "report"]


@virtual_time
async def test_each_kind_of_intent_sends_its_request() -> None:
    replies = StubTransport(created_reply)
    await executor(replies).execute(
        [
            Patch(pod("a"), {"metadata": {"resourceVersion": "7"}}),
            Patch(pod("c"), [{"op": "remove", "path": "/x"}], PatchType.JSON),
            Patch(pod("d"), {"spec": {"replicas": 2}}, subresource="scale"),
            Status(pod("e"), {"status": {"phase": "x"}}),
            Delete(pod("f"), uid="u", grace_seconds=0),
        ]
    )
    seen = {
        (r.method, r.path.removeprefix("/api/v1/namespaces/n/"), r.content_type.split("/")[1])
        for r in (sent.request for sent in replies.sent)
    }
    assert seen == {
        ("PATCH", "pods/a", "merge-patch+json"),
        ("PATCH", "pods/c", "json-patch+json"),
        ("PATCH", "pods/d/scale", "merge-patch+json"),
        ("PATCH", "pods/e/status", "merge-patch+json"),
        ("DELETE", "pods/f", "json"),
    }
    delete = next(sent.body for sent in replies.sent if sent.request.path.endswith("/f"))
    assert delete["preconditions"] == {"uid": "u"}
    assert (delete["propagationPolicy"], delete["gracePeriodSeconds"]) == ("Background", 0)


@virtual_time
async def test_dependents_of_failed_intent_are_skipped() -> None:
    def answer(request: Request) -> Answer:
        return refused(403, "Forbidden") if b'"bad"' in (request.body or b"") else created_reply(request)

    bad = create("bad")
    child = create("child", bad)
    plan = [bad, child, create("grandchild", child), create("other")]
    outcome = await executor(replies := StubTransport(answer)).execute(plan)
    assert states(outcome) == ["failed", "skipped", "skipped", "done"]
    with pytest.raises(KeyError, match="has created nothing"):
        outcome.resolve(uid_of(bad))
    assert outcome.failed
    assert not outcome.outdated
    assert isinstance(outcome.errors[0], Forbidden)
    assert len(replies.sent) == 2


@virtual_time
async def test_429_is_retried_after_pause_and_halves_limit() -> None:
    answers = iter([refused(429, "TooManyRequests", retry_after="3")])
    replies = StubTransport(lambda request: next(answers, None) or created_reply(request))
    limiter = WriteLimiter(LimitBounds(initial=10, lowest=1, highest=100))
    outcome = await Executor(replies, RESOURCES, limiter=limiter).execute([create("a")])
    assert states(outcome) == ["done"]
    assert replies.sent[1].began - replies.sent[0].ended >= 3.0
    assert limiter.limit == 5
    assert limiter.in_flight == 0


@pytest.mark.parametrize("error", [ConnectError("down"), None], ids=["no connection", "too many requests"])
def test_write_fails_after_repeated_rejections(error: Exception | None) -> None:
    @virtual_time
    async def run() -> None:
        replies = StubTransport(lambda _: error or refused(429, "TooManyRequests"))
        outcome = await executor(replies).execute([create("a")])
        assert states(outcome) == ["failed"]
        assert isinstance(outcome.errors[0], ConnectError if error else TooManyRequests)
        assert len(replies.sent) == 5

    run()


@virtual_time
async def test_no_write_is_sent_without_leadership() -> None:
    leadership = Leadership(clock=asyncio.get_running_loop().time)
    leadership.extend(1.0)
    replies = StubTransport(created_reply, latency=lambda _: 0.7)
    fenced = FencedTransport(replies, leadership, longest_write=5.0)
    first = create("a")
    second = create("b", first)
    outcome = await Executor(fenced, RESOURCES).execute([first, second, create("c", second)])
    assert states(outcome) == ["done", "done", "skipped"]
    outcome = await Executor(fenced, RESOURCES).execute([create("d")])
    assert states(outcome) == ["skipped"]
    assert isinstance(outcome.results[0].error, LeadershipLost)
    assert not outcome.failed
    assert len(replies.sent) == 2


FENCE = 4.5


@pytest.mark.parametrize(
    ("intent", "longest"),
    [
        (create("a"), 5.0),
        (Delete(pod("a"), uid="u"), 5.0),
        (Delete(pod("a")), FENCE),
        (Patch(pod("a"), {"metadata": {"resourceVersion": "1"}}), 5.0),
        (Patch(pod("a"), {"metadata": {"uid": "u"}}), 5.0),
        (Patch(pod("a"), {"metadata": {"labels": {}}}), FENCE),
        (Patch(pod("a"), [{"op": "remove", "path": "/x"}], PatchType.JSON), FENCE),
        (Status(pod("a"), {"metadata": {"resourceVersion": "1"}, "status": {}}), 5.0),
        (Status(pod("a"), {"status": {}}), FENCE),
    ],
)
def test_only_conditional_writes_may_outlast_the_fence(intent: Intent, longest: float) -> None:
    @virtual_time
    async def run() -> None:
        leadership = Leadership(clock=asyncio.get_running_loop().time)
        leadership.extend(1.0)
        replies = StubTransport(created_reply)
        await Executor(FencedTransport(replies, leadership, FENCE), RESOURCES).execute([intent])
        assert [sent.request.timeout for sent in replies.sent] == [longest]

    run()


@virtual_time
async def test_invalid_intent_fails_alone() -> None:
    owner = create("owner")
    unbound = Create(pod("unbound"), {"metadata": {"name": "unbound"}, "uid": uid_of(owner)})
    unknown = Create(Target("v1", "Teapot", "t", "n"), {})
    odd = Create(pod("odd"), {"when": object()})
    outcome = await executor(StubTransport(created_reply)).execute(
        [owner, unbound, unknown, odd, create("fine")]
    )
    assert states(outcome) == ["done", "failed", "failed", "failed", "done"]
    messages = [str(error) for error in outcome.errors]
    assert "name 'create Pod n/owner' in `after`" in messages[0]
    assert "v1 Teapot: register it" in messages[1]
    assert "put plain data into intents" in messages[2]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ([create("a"), create("a")], "planned twice"),
        ([create("b", create("a"))], "list it first"),
        ([create("b", create("a")), create("a")], "list it first"),
    ],
)
def test_invalid_plan_is_rejected(plan: list[Intent], message: str) -> None:
    @virtual_time
    async def run() -> None:
        with pytest.raises(ValueError, match=message):
            await executor(StubTransport(created_reply)).execute(plan)

    run()


@virtual_time
async def test_empty_plan_sends_nothing() -> None:
    outcome = await executor(replies := StubTransport(created_reply)).execute([])
    assert outcome.results == ()
    assert (outcome.failed, outcome.outdated, replies.sent) == (False, False, [])
