"""What the executor makes of a plan: order, binding, pace, and what it does when it may not send."""

from __future__ import annotations

import asyncio

import pytest
import structlog

from grove.api.intents import (
    Create,
    Delete,
    DeleteCollection,
    Intent,
    Patch,
    PatchType,
    Status,
    Target,
    derived,
    uid_of,
)
from grove.kube.client.transport import Request
from grove.kube.errors import ConnectError, Forbidden, NoAnswer, TooManyRequests
from grove.kube.executor.executor import Executor
from grove.kube.executor.write_latency import WriteClass
from grove.kube.executor.write_limiter import LimitBounds, WriteLimiter
from grove.kube.leader.leadership import FencedTransport, Leadership, LeadershipLost
from grove.kube.testing.virtual_time import virtual_time
from tests.kube.executor.plans import RESOURCES, RecordingStore, create, executor, pod, states
from tests.kube.executor.stub_transport import Answer, StubTransport, made, refused


@virtual_time
async def test_names_and_owners_are_bound_from_the_replies() -> None:
    def member(uid: str, index: int) -> str:
        return f"{uid}.{index}"

    owner = Create(Target("v1", "ConfigMap", "clique", "n"), {"metadata": {"name": "clique"}})
    names = [derived(member, uid_of(owner), index) for index in range(2)]
    ledger = Create(
        Target("v1", "Service", "gang", "n"), {"metadata": {"name": "gang"}, "members": names}, (owner.id,)
    )
    pods = [
        Create(pod(name), {"metadata": {"name": name}, "owner": uid_of(owner)}, (owner.id, ledger.id))
        for name in names
    ]
    replies = StubTransport(made)
    store = RecordingStore()
    outcome = await executor(replies, store).execute([owner, ledger, *pods])
    assert states(outcome) == ["done"] * 4
    sent = [sent.body for sent in replies.sent]
    assert sent[1]["members"] == ["uid-clique.0", "uid-clique.1"]
    assert [(body["metadata"]["name"], body["owner"]) for body in sent[2:]] == [
        ("uid-clique.0", "uid-clique"),
        ("uid-clique.1", "uid-clique"),
    ]
    assert outcome.result_of(pods[1]).name == "uid-clique.1"
    assert [outcome.resolve(text) for text in (*names, uid_of(owner), "known")] == [
        "uid-clique.0",
        "uid-clique.1",
        "uid-clique",
        "known",
    ]
    assert set(store.known) == {"clique", "gang", "uid-clique.0", "uid-clique.1"}


@virtual_time
async def test_independent_intents_are_under_way_together_within_the_limit() -> None:
    replies = StubTransport(made, latency=lambda _: 0.5)
    outcome = await executor(replies, slots=8).execute([create(f"p{i}") for i in range(24)])
    assert states(outcome) == ["done"] * 24
    assert replies.most_in_flight == 8
    assert asyncio.get_running_loop().time() == pytest.approx(1.5)


@virtual_time
async def test_a_chain_needs_no_task_of_its_own() -> None:
    tasks: list[int] = []

    def answer(request: Request) -> Answer:
        tasks.append(len(asyncio.all_tasks()))
        return made(request)

    first = create("a")
    second = create("b", first)
    await executor(StubTransport(answer)).execute([first, second, create("c", second)])
    assert tasks == [1, 1, 1]


@virtual_time
async def test_creates_go_before_status_writes_that_nothing_depends_on() -> None:
    bookkeeping = Status(pod("marked"), {"status": {}})
    status = Status(pod("told"), {"status": {}})
    creates = [create(f"p{i}") for i in range(3)]
    victim = Delete(pod("victim"), after=(bookkeeping.id,))
    replies = StubTransport(made)
    await executor(replies, slots=2).execute([status, bookkeeping, *creates, victim])
    order = [sent.request.name or sent.body["metadata"]["name"] for sent in replies.sent]
    assert order == ["marked", "p0", "p1", "p2", "victim", "told"]


@virtual_time
async def test_each_kind_of_intent_is_spoken_as_the_api_wants_it() -> None:
    replies = StubTransport(made)
    await executor(replies).execute(
        [
            Patch(pod("a"), {"metadata": {"resourceVersion": "7"}}),
            Patch(pod("b"), {"kind": "Pod"}, PatchType.APPLY),
            Patch(pod("c"), [{"op": "remove", "path": "/x"}], PatchType.JSON),
            Patch(pod("d"), {"spec": {"replicas": 2}}, subresource="scale"),
            Status(pod("e"), {"status": {"phase": "x"}}),
            Delete(pod("f"), uid="u", resource_version="9", grace_seconds=0),
            DeleteCollection("v1", "Pod", "n", "app=x"),
        ]
    )
    seen = {
        (r.method, r.path.removeprefix("/api/v1/namespaces/n/"), r.content_type.split("/")[1])
        for r in (sent.request for sent in replies.sent)
    }
    assert seen == {
        ("PATCH", "pods/a", "merge-patch+json"),
        ("PATCH", "pods/b?fieldManager=grove&force=true", "apply-patch+yaml"),
        ("PATCH", "pods/c", "json-patch+json"),
        ("PATCH", "pods/d/scale", "merge-patch+json"),
        ("PATCH", "pods/e/status", "merge-patch+json"),
        ("DELETE", "pods/f", "json"),
        ("DELETE", "pods?labelSelector=app%3Dx", "json"),
    }
    delete = next(sent.body for sent in replies.sent if sent.request.path.endswith("/f"))
    assert delete["preconditions"] == {"uid": "u", "resourceVersion": "9"}
    assert (delete["propagationPolicy"], delete["gracePeriodSeconds"]) == ("Background", 0)


@virtual_time
async def test_dependents_of_a_refused_intent_are_skipped_and_the_others_go_on() -> None:
    def answer(request: Request) -> Answer:
        return refused(403, "Forbidden") if b'"bad"' in (request.body or b"") else made(request)

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
async def test_a_refusal_for_load_is_sent_again_when_the_server_asked_for_it_and_cuts_the_limit() -> None:
    answers = iter([refused(429, "TooManyRequests", retry_after="3")])
    replies = StubTransport(lambda request: next(answers, None) or made(request))
    limiter = WriteLimiter(LimitBounds(initial=10, lowest=1, highest=100))
    outcome = await Executor(replies, RESOURCES, limiter=limiter).execute([create("a")])
    assert states(outcome) == ["done"]
    assert replies.sent[1].began - replies.sent[0].ended >= 3.0
    assert limiter.limit == 5
    assert limiter.in_flight == 0


@pytest.mark.parametrize("error", [ConnectError("down"), None], ids=["no connection", "too many requests"])
def test_a_server_that_never_takes_a_write_fails_it(error: Exception | None) -> None:
    @virtual_time
    async def run() -> None:
        replies = StubTransport(lambda _: error or refused(429, "TooManyRequests"))
        outcome = await executor(replies).execute([create("a")])
        assert states(outcome) == ["failed"]
        assert isinstance(outcome.errors[0], ConnectError if error else TooManyRequests)
        assert len(replies.sent) == 5

    run()


@virtual_time
async def test_without_leadership_nothing_is_sent() -> None:
    leadership = Leadership(clock=asyncio.get_running_loop().time)
    leadership.extend(1.0)
    replies = StubTransport(made, latency=lambda _: 0.7)
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
        (Delete(pod("a"), resource_version="1"), 5.0),
        (Delete(pod("a")), FENCE),
        (Patch(pod("a"), {"metadata": {"resourceVersion": "1"}}), 5.0),
        (Patch(pod("a"), {"metadata": {"uid": "u"}}), 5.0),
        (Patch(pod("a"), {"metadata": {"labels": {}}}), FENCE),
        (Patch(pod("a"), {"kind": "Pod"}, PatchType.APPLY), FENCE),
        (Patch(pod("a"), [{"op": "remove", "path": "/x"}], PatchType.JSON), FENCE),
        (Status(pod("a"), {"metadata": {"resourceVersion": "1"}, "status": {}}), 5.0),
        (Status(pod("a"), {"status": {}}), FENCE),
        (DeleteCollection("v1", "Pod", "n", "a=b"), FENCE),
    ],
)
def test_only_a_conditional_write_may_take_longer_than_the_lease_allows(
    intent: Intent, longest: float
) -> None:
    @virtual_time
    async def run() -> None:
        leadership = Leadership(clock=asyncio.get_running_loop().time)
        leadership.extend(1.0)
        replies = StubTransport(made)
        await Executor(FencedTransport(replies, leadership, FENCE), RESOURCES).execute([intent])
        assert [sent.request.timeout for sent in replies.sent] == [longest]

    run()


class Slow:
    """A server behind a webhook: writes in one namespace take some time, those of others none."""

    def __init__(self, seconds: float) -> None:
        self.replies = StubTransport(self.answer, self.latency)
        self.seconds = seconds

    def latency(self, request: Request) -> float:
        slow = request.is_write and request.namespace == "n"
        return min(self.seconds, request.timeout) if slow else 0.01

    def answer(self, request: Request) -> Answer:
        if not request.is_write:
            return refused(404, "NotFound", name=request.name)
        if request.namespace == "n" and self.seconds > request.timeout:
            return NoAnswer("late", request.timeout)
        return made(request)


class Watched:
    """What the executor says while it works."""

    def __init__(self) -> None:
        self.waited = 0
        self.slow: list[str] = []

    def waits(self) -> None:
        self.waited += 1

    def is_slow(self, write_class: WriteClass) -> None:
        self.slow.append(str(write_class))


@virtual_time
async def test_a_write_that_ran_out_of_time_gets_more_the_next_time() -> None:
    server, progress = Slow(18.0), Watched()
    sender = executor(server.replies)
    with structlog.testing.capture_logs() as logs:
        outcomes = [states(await sender.execute([create("a")], progress)) for _ in range(4)]
    assert outcomes == [["failed"], ["failed"], ["done"], ["done"]]
    writes = [sent.request.timeout for sent in server.replies.sent if sent.request.is_write]
    assert writes == [5.0, 10.0, 20.0, 21.0]
    assert [line["event"] for line in logs] == ["writes are slow"], "one line, however many tries"
    assert progress.slow == ["creating pods"] * 4
    server.seconds = 0.1
    with structlog.testing.capture_logs() as logs:
        await sender.execute([create("a")], progress)
    assert [line["event"] for line in logs] == ["writes are quick again"]


@virtual_time
async def test_slow_admission_is_no_sign_of_an_overloaded_server() -> None:
    server = Slow(7.0)
    limiter = WriteLimiter(LimitBounds(initial=8, lowest=1, highest=8))
    sender = Executor(server.replies, RESOURCES, limiter=limiter)
    for _ in range(3):
        await sender.execute([create(f"p{index}") for index in range(16)])
    assert limiter.limit == 8


@virtual_time
async def test_writes_of_a_slow_namespace_leave_slots_to_others() -> None:
    """Many more than there are slots, at first and when it is known that they are slow."""
    server, loop = Slow(7.0), asyncio.get_running_loop()
    sender = executor(server.replies, slots=8)

    async def other() -> float:
        began = loop.time()
        about = Target("v1", "Pod", "quick", "other")
        await sender.execute([Create(about, {"metadata": {"name": "quick"}})])
        return loop.time() - began

    crowds = [asyncio.create_task(sender.execute([create(f"p{i}-{j}") for i in range(9)])) for j in range(9)]
    await asyncio.sleep(0.5)
    assert await other() < 1.0
    await asyncio.sleep(6.0)
    assert await other() < 0.1
    for outcome in await asyncio.gather(*crowds):
        assert len(outcome.results) == 9
    assert limiter_is_empty(sender.limiter)


def limiter_is_empty(limiter: WriteLimiter) -> bool:
    return limiter.in_flight == 0 and limiter.slow_in_flight == 0


@virtual_time
async def test_an_intent_that_makes_no_sense_fails_alone() -> None:
    owner = create("owner")
    unbound = Create(pod("unbound"), {"metadata": {"name": "unbound"}, "uid": uid_of(owner)})
    unknown = Create(Target("v1", "Teapot", "t", "n"), {})
    odd = Create(pod("odd"), {"when": object()})
    outcome = await executor(StubTransport(made)).execute([owner, unbound, unknown, odd, create("fine")])
    assert states(outcome) == ["done", "failed", "failed", "failed", "done"]
    words = [str(error) for error in outcome.errors]
    assert "name 'create Pod n/owner' in `after`" in words[0]
    assert "v1 Teapot: register it" in words[1]
    assert "put plain data into intents" in words[2]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ([create("a"), create("a")], "planned twice"),
        ([create("b", create("a"))], "list it first"),
        ([create("b", create("a")), create("a")], "list it first"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(plan: list[Intent], words: str) -> None:
    @virtual_time
    async def run() -> None:
        with pytest.raises(ValueError, match=words):
            await executor(StubTransport(made)).execute(plan)

    run()


@virtual_time
async def test_an_empty_plan_costs_nothing() -> None:
    outcome = await executor(replies := StubTransport(made)).execute([])
    assert outcome.results == ()
    assert (outcome.failed, outcome.outdated, replies.sent) == (False, False, [])
