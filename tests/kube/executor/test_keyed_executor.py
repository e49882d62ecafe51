"""A key is not planned while the outcome of one of its writes is unknown; its worker is free meanwhile."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from grove.api.intents import Create, Delete, Intent
from grove.kube.client.transport import Request, Response
from grove.kube.errors import ConnectError, LostReply
from grove.kube.executor.executor import Executor
from grove.kube.executor.keyed_executor import KeyedExecutor, WriteProblem, WriteState
from grove.kube.executor.write_limiter import LimitBounds, WriteLimiter
from grove.kube.testing.virtual_time import virtual_time
from grove.kube.workqueue.queue import WorkQueue
from tests.kube.executor.plans import RESOURCES, RecordingStore, create, pod
from tests.kube.executor.stub_transport import Answer, StubTransport, created_reply, refused


class Controller:
    """Plans a create for each key until the store has the object."""

    def __init__(self, replies: StubTransport, workers: int = 1) -> None:
        self.store = RecordingStore()
        limiter = WriteLimiter(LimitBounds(8, 8, 8))
        executor = Executor(replies, RESOURCES, store=self.store, limiter=limiter)
        self.queue: WorkQueue[str] = WorkQueue("test", self._work, workers=workers, tenant=lambda key: key[0])
        states: defaultdict[str, WriteState] = defaultdict(WriteState)
        self.writes: KeyedExecutor[str] = KeyedExecutor(
            executor, self.queue, states.__getitem__, self._record_problems
        )
        self.planned: list[tuple[str, float]] = []
        self.problems: list[tuple[str, list[str]]] = []
        self.done: dict[str, asyncio.Event] = {}

    def _record_problems(self, key: str, problems: tuple[WriteProblem, ...]) -> None:
        self.problems.append((key, [problem.code for problem in problems]))

    async def _work(self, key: str) -> None:
        if not await self.writes.verify(key):
            return
        if key in self.store.known:
            self.done.setdefault(key, asyncio.Event()).set()
            return
        self.planned.append((key, asyncio.get_running_loop().time()))
        outcome = await self.writes.execute(key, [create(key, owner="u1")])
        self.writes.end_pass(key)
        self.queue.enqueue(key, failed=outcome.failed)

    async def until_done(self, key: str) -> None:
        await self.done.setdefault(key, asyncio.Event()).wait()


def owned(request: Request) -> Response:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u1", "controller": True}
    return created_reply(request, ownerReferences=[reference])


@virtual_time
async def test_key_with_unknown_write_is_read_before_next_plan() -> None:
    """The create took effect and its reply is lost; then the server is unreachable for ten minutes."""
    loop = asyncio.get_running_loop()

    def answer(request: Request) -> Answer:
        if request.is_write:
            return LostReply("cut")
        return ConnectError("down") if loop.time() < 600 else owned(request)

    replies = StubTransport(answer)
    controller = Controller(replies)
    controller.queue.enqueue("a")
    controller.queue.start()
    await controller.until_done("a")
    assert [key for key, _ in controller.planned] == ["a"], "planned once, not while the outcome is unknown"
    assert loop.time() < 611, "an answering server is noticed within the longest back-off"
    assert len([sent for sent in replies.sent if sent.request.is_write]) == 1
    assert controller.problems == [("a", ["UNKNOWN_CREATE"]), ("a", [])]
    await controller.queue.stop()


@virtual_time
async def test_key_with_unknown_write_frees_its_worker() -> None:
    """One worker: other keys are worked on while one object cannot be read."""

    def answer(request: Request) -> Answer:
        if b'"name":"a"' in (request.body or b"") or request.name == "a":
            return LostReply("cut") if request.is_write else refused(503, "ServiceUnavailable")
        return owned(request)

    controller = Controller(StubTransport(answer))
    controller.queue.enqueue("a")
    controller.queue.enqueue("b")
    controller.queue.start()
    await controller.until_done("b")
    assert asyncio.get_running_loop().time() < 10
    await controller.queue.stop()


@virtual_time
async def test_resolved_unknown_write_is_planned_again() -> None:
    """The first write took no effect: the second plan creates the object, once."""
    answers = iter([LostReply("cut"), *[ConnectError("down")] * 4, refused(404, "NotFound", name="a")])
    replies = StubTransport(lambda request: next(answers, None) or owned(request))
    controller = Controller(replies)
    controller.queue.enqueue("a")
    controller.queue.start()
    await controller.until_done("a")
    assert [key for key, _ in controller.planned] == ["a", "a"]
    await controller.queue.stop()


@virtual_time
async def test_all_unknown_writes_of_a_plan_are_read() -> None:
    away = True
    read: list[str] = []

    def answer(request: Request) -> Answer:
        if not request.is_write and not away:
            read.append(request.name)
            return refused(404, "NotFound", name=request.name)
        return LostReply("cut")

    controller = Controller(StubTransport(answer))
    intents: list[Intent] = [Create(pod("a"), {"metadata": {"name": "a"}}), Delete(pod("b"), uid="u")]
    outcome = await controller.writes.execute("k", intents)
    assert len(outcome.unknown_writes) == 2
    assert not await controller.writes.verify("k")
    away = False
    assert await controller.writes.verify("k")
    assert sorted(read) == ["a", "b"]
    assert controller.store.lost == [("b", "u")]
    assert await controller.writes.verify("k")
    assert len(read) == 2, "a resolved write is not read again"


@virtual_time
async def test_slow_write_is_reported_and_frees_its_worker() -> None:
    replies = StubTransport(
        owned, latency=lambda request: 4.0 if b'"name":"a' in (request.body or b"") else 0.01
    )
    controller = Controller(replies, workers=2)
    for key in ("a1", "a2", "b"):
        controller.queue.enqueue(key)
    controller.queue.start()
    await controller.until_done("b")
    assert asyncio.get_running_loop().time() < 2
    await controller.until_done("a2")
    assert [each for each in controller.problems if each[0] == "a1"] == [("a1", ["SLOW_CREATE"]), ("a1", [])]
    await controller.queue.stop()


@virtual_time
async def test_forgotten_key_reports_no_slow_write() -> None:
    controller = Controller(StubTransport(owned, latency=lambda _: 4.0))
    controller.queue.enqueue("a")
    controller.queue.start()
    await asyncio.sleep(3.5)
    assert controller.problems == [("a", ["SLOW_CREATE"])]
    controller.writes.forget("a")
    assert controller.problems[-1] == ("a", [])
    await controller.queue.stop()
