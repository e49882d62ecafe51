"""A key is not planned while the outcome of one of its writes is unknown; its worker is free meanwhile."""

from __future__ import annotations

import asyncio

from grove.api.intents import Create, Delete, Intent
from grove.kube.errors import ConnectError, LostReply
from grove.kube.executor import Executor
from grove.kube.keyed import KeyedExecutor, Trouble
from grove.kube.limiter import Bounds, Limiter
from grove.kube.queue import Queue
from grove.kube.testing import virtual_time
from grove.kube.transport import Request, Response
from tests.kube.plans import RESOURCES, Notes, create, pod
from tests.kube.replies import Answer, Replies, made, refused


class Controller:
    """Plans a create for each key until the store has it, on a server that `answer` speaks for."""

    def __init__(self, replies: Replies, workers: int = 1) -> None:
        self.store = Notes()
        limiter = Limiter(Bounds(8, 8, 8))
        executor = Executor(replies, RESOURCES, store=self.store, limiter=limiter)
        self.queue: Queue[str] = Queue("test", self._work, workers=workers, tenant=lambda key: key[0])
        self.writes: KeyedExecutor[str] = KeyedExecutor(executor, lambda: self.queue, self._note)
        self.planned: list[tuple[str, float]] = []
        self.said: list[tuple[str, list[str]]] = []
        self.done: dict[str, asyncio.Event] = {}

    def _note(self, key: str, troubles: tuple[Trouble, ...]) -> None:
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
        self.queue.wake(key, failed=outcome.failed)

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

    replies = Replies(answer)
    controller = Controller(replies)
    controller.queue.wake("a")
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

    controller = Controller(Replies(answer))
    controller.queue.wake("a")
    controller.queue.wake("b")
    controller.queue.start()
    await controller.until_done("b")
    assert asyncio.get_running_loop().time() < 10
    await controller.queue.stop()


@virtual_time
async def test_a_key_whose_doubt_is_resolved_plans_on_what_is_there() -> None:
    """Nothing took effect: the second plan makes it, and is the only one that does."""
    answers = iter([LostReply("cut"), *[ConnectError("down")] * 4, refused(404, "NotFound", name="a")])
    replies = Replies(lambda request: next(answers, None) or owned(request))
    controller = Controller(replies)
    controller.queue.wake("a")
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

    controller = Controller(Replies(answer))
    intents: list[Intent] = [Create(pod("a"), {"metadata": {"name": "a"}}), Delete(pod("b"), uid="u")]
    outcome = await controller.writes.execute("k", intents)
    assert len(outcome.doubts) == 2
    assert not await controller.writes.verify("k")
    away = False
    assert await controller.writes.verify("k")
    assert sorted(read) == ["a", "b"]
    assert controller.store.lost == [("b", "u")]
    assert await controller.writes.verify("k")
    assert len(read) == 2, "what is known is not read again"


@virtual_time
async def test_a_slow_write_is_reported_while_it_is_in_flight_and_frees_its_worker() -> None:
    replies = Replies(owned, latency=lambda request: 4.0 if b'"name":"a' in (request.body or b"") else 0.01)
    controller = Controller(replies, workers=2)
    for key in ("a1", "a2", "b"):
        controller.queue.wake(key)
    controller.queue.start()
    await controller.until_done("b")
    assert asyncio.get_running_loop().time() < 2
    await controller.until_done("a2")
    assert [said for said in controller.said if said[0] == "a1"] == [("a1", ["SLOW_CREATE"]), ("a1", [])]
    await controller.queue.stop()
