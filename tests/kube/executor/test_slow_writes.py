"""Slow writes in the executor: longer timeouts, reports, and slots that stay free for other namespaces."""

from __future__ import annotations

import asyncio

import structlog

from grove.api.intents import Create, Target
from grove.kube.client.transport import Request
from grove.kube.errors import NoAnswer
from grove.kube.executor.executor import Executor
from grove.kube.executor.write_latency import WriteClass
from grove.kube.executor.write_limiter import LimitBounds, WriteLimiter
from grove.kube.testing.virtual_time import virtual_time
from tests.kube.executor.plans import RESOURCES, create, executor, states
from tests.kube.executor.stub_transport import Answer, StubTransport, created_reply, refused


class SlowServer:
    """A server with a webhook: writes in one namespace take some seconds, those in others are fast."""

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
        return created_reply(request)


class RecordedProgress:
    """Counts the callbacks of the executor."""

    def __init__(self) -> None:
        self.waited = 0
        self.slow: list[str] = []

    def on_wait(self) -> None:
        self.waited += 1

    def on_slow(self, write_class: WriteClass) -> None:
        self.slow.append(str(write_class))


@virtual_time
async def test_write_after_timeout_gets_longer_timeout() -> None:
    server, progress = SlowServer(18.0), RecordedProgress()
    sender = executor(server.replies)
    with structlog.testing.capture_logs() as logs:
        outcomes = [states(await sender.execute([create("a")], progress)) for _ in range(4)]
    assert outcomes == [["failed"], ["failed"], ["done"], ["done"]]
    writes = [sent.request.timeout for sent in server.replies.sent if sent.request.is_write]
    assert writes == [5.0, 10.0, 20.0, 21.0]
    assert [line["event"] for line in logs] == ["writes are slow"], "one line, however many attempts"
    assert progress.slow == ["creating pods"] * 4
    server.seconds = 0.1
    with structlog.testing.capture_logs() as logs:
        await sender.execute([create("a")], progress)
    assert [line["event"] for line in logs] == ["writes are fast again"]


@virtual_time
async def test_slow_admission_does_not_lower_limit() -> None:
    server = SlowServer(7.0)
    limiter = WriteLimiter(LimitBounds(initial=8, lowest=1, highest=8))
    sender = Executor(server.replies, RESOURCES, limiter=limiter)
    for _ in range(3):
        await sender.execute([create(f"p{index}") for index in range(16)])
    assert limiter.limit == 8


@virtual_time
async def test_slow_namespace_leaves_slots_to_others() -> None:
    """Many more writes than slots, both at first and once they are known to be slow."""
    server, loop = SlowServer(7.0), asyncio.get_running_loop()
    sender = executor(server.replies, slots=8)

    async def other() -> float:
        began = loop.time()
        target = Target("v1", "Pod", "fast", "other")
        await sender.execute([Create(target, {"metadata": {"name": "fast"}})])
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
