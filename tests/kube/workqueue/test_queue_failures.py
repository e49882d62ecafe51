"""The work queue on virtual time when work fails, is cancelled, or the queue is stopped."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from grove.kube.client.retry import Backoff
from grove.kube.errors import KubeError
from grove.kube.testing.virtual_time import virtual_time
from tests.kube.workqueue.recorded_work import RecordedWork, now, started


@virtual_time
async def test_failures_back_off_and_success_resets() -> None:
    began: list[float] = []

    async def work(key: str) -> None:
        began.append(now())
        if len(began) not in (4, 5):
            raise KubeError("no")

    queue = started(work, backoff=Backoff(first=1.0, longest=4.0))
    queue.enqueue("a")
    await asyncio.sleep(11)
    assert len(began) == 4  # the fourth succeeds
    gaps = [late - early for early, late in pairwise(began)]
    for gap, ceiling in zip(gaps, (1.0, 2.0, 4.0), strict=True):
        assert ceiling / 2 <= gap <= ceiling
    queue.enqueue("a")  # the fifth succeeds too
    await asyncio.sleep(1)
    queue.enqueue("a")  # the sixth fails: back to the first delay
    await asyncio.sleep(1)
    assert len(began) == 7
    assert 0.5 <= began[6] - began[5] <= 1.0


@virtual_time
async def test_failure_is_logged_with_key_action_and_reason() -> None:
    problems = [KubeError("no"), ValueError("odd")]

    async def work(key: str) -> None:
        if problems:
            raise problems.pop(0)

    queue = started(work, backoff=Backoff(first=1.0, longest=1.0))
    with capture_logs() as logs:
        queue.enqueue("a")
        await asyncio.sleep(5)
    shown = [(line["log_level"], line["key"], line["action"], line["reason"]) for line in logs]
    assert shown == [("warning", "a", "retry", "no"), ("error", "a", "retry", "odd")]


@virtual_time
async def test_failed_key_keeps_an_earlier_due_time() -> None:
    work = RecordedWork(takes=0.0)
    plan: list[tuple[float | None, bool]] = [(None, True), (0.6, True), (None, False)]

    async def reports(key: str) -> None:
        await work(key)
        if plan:
            at, failed = plan.pop(0)
            queue.enqueue(key, at, failed=failed)

    queue = started(reports, backoff=Backoff(first=1.0, longest=1.0))
    queue.enqueue("a", 0.1)
    await asyncio.sleep(20)
    first, second, third = (at for at, _ in work.began)
    assert first == pytest.approx(0.1)
    assert 0.6 <= second <= 1.1
    assert second == pytest.approx(0.6) or third <= second  # 0.6 had passed: the third pass is at once
    assert third - second < 1.0


@virtual_time
async def test_enqueue_during_backoff_works_at_once() -> None:
    began: list[float] = []

    async def work(key: str) -> None:
        began.append(now())
        raise KubeError("no")

    queue = started(work, backoff=Backoff(first=100.0, longest=100.0))
    queue.enqueue("a")
    await asyncio.sleep(1)
    queue.enqueue("a")
    await asyncio.sleep(1)
    assert began == [0, 1]


@virtual_time
async def test_failing_key_does_not_stop_another() -> None:
    work = RecordedWork()

    async def mixed(key: str) -> None:
        if key == "bad":
            raise RuntimeError("a bug")
        await work(key)

    queue = started(mixed)
    queue.enqueue("bad")
    queue.enqueue("good")
    await asyncio.sleep(1.5)
    assert [key for _, key in work.ended] == ["good"]


@virtual_time
async def test_stop_lets_work_finish_and_starts_nothing() -> None:
    work = RecordedWork(takes=2.0)
    queue = started(work)
    queue.enqueue("a")
    queue.enqueue("b")
    await asyncio.sleep(1)
    await queue.stop(grace=5.0)
    assert now() == 2.0
    await asyncio.sleep(20)
    assert work.ended == [(2, "a")]


@virtual_time
async def test_work_cancelled_by_stop_is_repeated_after_start() -> None:
    work = RecordedWork(takes=60.0)
    queue = started(work)
    queue.enqueue("a")
    await asyncio.sleep(1)
    await queue.stop(grace=5.0)
    assert now() == 6.0
    assert work.ended == []
    work.takes = 1.0
    queue.start()
    await asyncio.sleep(5)
    assert work.ended == [(7, "a")]


@virtual_time
async def test_task_cancelled_before_it_ran_is_retried() -> None:
    work = RecordedWork()
    queue = started(work, backoff=Backoff(first=1.0, longest=1.0))
    queue.enqueue("a")
    (task,) = (task for task in asyncio.all_tasks() if task.get_name() == "test a")
    task.cancel()
    await asyncio.sleep(5)
    assert [key for _, key in work.ended] == ["a"]


@virtual_time
async def test_work_ignoring_cancellation_does_not_block_stop() -> None:
    async def stubborn(key: str) -> None:
        for _ in range(3):
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                continue

    queue = started(stubborn)
    queue.enqueue("a")
    await asyncio.sleep(0)
    await queue.stop(grace=5.0)
    assert now() == 6.0
