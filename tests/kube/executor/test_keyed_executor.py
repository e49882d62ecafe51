"""A key is not planned while the outcome of one of its writes is unknown; its worker is free meanwhile."""

from __future__ import annotations

import asyncio

from grove.api.intents import Create, Delete, Intent
from grove.kube.client.transport import Request, Response
from grove.kube.errors import ConnectError, LostReply
from grove.kube.executor.executor import Executor
from grove.kube.executor.keyed_executor import KeyedExecutor, WriteProblem
from grove.kube.executor.write_limiter import LimitBounds, WriteLimiter
from grove.kube.testing.virtual_time import virtual_time
from grove.kube.workqueue.queue import WorkQueue
from tests.kube.executor.plans import RESOURCES, RecordingStore, create, pod
from tests.kube.executor.stub_transport import Answer, StubTransport, made, refused


class Controller:
    """Plans a create for each key until the store has it, on a server that `answer` speaks for."""

    def __init__(self, replies: StubTransport, workers: int = 1) -> None:
        self.store = RecordingStore()
        limiter = WriteLimiter(LimitBounds(8, 8, 8))
        executor = Executor(replies, RESOURCES, store=self.store, limiter=limiter)
        self.queue: WorkQueue[str] = WorkQueue("test", self._work, workers=workers, tenant=lambda key: key[0])
        self.writes: KeyedExecutor[str] = KeyedExecutor(executor, lambda: self.queue, self._record_result)
        self.planned: list[tuple[str, float]] = []
        self.said: list[tuple[str, list[str]]] = []
        self.done: dict[str, asyncio.Event] = {}

    def _record_result(self, key: str, troubles: tuple[WriteProblem, ...]) -> None:
        self.said.append((key, [trouble.code for trouble in troubles]))

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
    return made(request, ownerReferences=[reference])


@virtual_time
async def test_a_key_in_doubt_reads_before_it_plans_again() -> None:
    """The create took effect and its reply is lost; then the server is away for ten minutes."""
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
    assert [key for key, _ in controller.planned] == ["a"], "planned once, not on what is not known"
    assert loop.time() < 611, "the return of the server is noticed within the longest back-off"
    assert len([sent for sent in replies.sent if sent.request.is_write]) == 1
    assert controller.said == [("a", ["UNKNOWN_CREATE"]), ("a", [])]
    await controller.queue.stop()


@virtual_time
async def test_a_key_in_doubt_frees_its_worker() -> None:
    """One worker: what can be done for others is done while one object cannot be read."""

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
async def test_a_key_whose_doubt_is_resolved_plans_on_what_is_there() -> None:
    """Nothing took effect: the second plan makes it, and is the only one that does."""
    answers = iter([LostReply("cut"), *[ConnectError("down")] * 4, refused(404, "NotFound", name="a")])
    replies = StubTransport(lambda request: next(answers, None) or owned(request))
    controller = Controller(replies)
    controller.queue.enqueue("a")
    controller.queue.start()
    await controller.until_done("a")
    assert [key for key, _ in controller.planned] == ["a", "a"]
    await controller.queue.stop()


@virtual_time
async def test_all_doubts_of_a_plan_are_read() -> None:
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
    assert len(read) == 2, "what is known is not read again"


@virtual_time
async def test_a_slow_write_is_reported_while_it_is_in_flight_and_frees_its_worker() -> None:
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
    assert [said for said in controller.said if said[0] == "a1"] == [("a1", ["SLOW_CREATE"]), ("a1", [])]
    await controller.queue.stop()
