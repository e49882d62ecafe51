"""The queue's promises, on virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import REGISTRY

from grove.kube.errors import KubeError
from grove.kube.queue import Queue
from grove.kube.retry import Backoff
from grove.kube.testing import virtual_time

Work = Callable[[str], Coroutine[Any, Any, object]]


def now() -> float:
    return asyncio.get_running_loop().time()


class Record:
    """Work that notes when it began and ended on what, and takes as long as it is told."""

    def __init__(self, takes: float = 1.0) -> None:
        self.takes = takes
        self.began: list[tuple[float, str]] = []
        self.ended: list[tuple[float, str]] = []

    async def __call__(self, key: str) -> None:
        self.began.append((now(), key))
        await asyncio.sleep(self.takes)
        self.ended.append((now(), key))


def started(work: Work, workers: int = 1, backoff: Backoff | None = None) -> Queue[str]:
    queue = Queue("test", work, workers=workers, backoff=backoff, rng=random.Random(0))
    queue.start()
    return queue


@virtual_time
async def test_ready_keys_are_worked_on_first_come_first_served() -> None:
    work = Record()
    queue = started(work)
    for key in "abc":
        queue.wake(key)
    await asyncio.sleep(10)
    assert work.began == [(0, "a"), (1, "b"), (2, "c")]


@virtual_time
async def test_a_thousand_wakes_of_a_waiting_key_are_one() -> None:
    work = Record()
    queue = started(work)
    queue.wake("a")
    for _ in range(1000):
        queue.wake("b")
    await asyncio.sleep(10)
    assert work.began == [(0, "a"), (1, "b")]


@virtual_time
async def test_a_wake_during_work_means_once_more_and_never_at_the_same_time() -> None:
    work = Record()
    queue = started(work, workers=5)
    queue.wake("a")
    await asyncio.sleep(0.5)
    queue.wake("a")
    queue.wake("a")
    await asyncio.sleep(10)
    assert work.began == [(0, "a"), (1, "a")]


@virtual_time
async def test_a_key_that_is_always_awake_does_not_starve_the_others() -> None:
    work = Record()

    async def restless(key: str) -> None:
        if key == "restless":
            queue.wake(key)
        await work(key)

    queue = started(restless)
    queue.wake("restless")
    queue.wake("patient")
    await asyncio.sleep(2.5)
    await queue.stop(grace=0.0)
    assert [key for _, key in work.began] == ["restless", "patient", "restless"]


@virtual_time
async def test_no_more_than_the_workers_work_at_once() -> None:
    work = Record()
    queue = started(work, workers=2)
    for key in "abcde":
        queue.wake(key)
    await asyncio.sleep(10)
    assert [at for at, _ in work.began] == [0, 0, 1, 1, 2]


@virtual_time
async def test_delayed_wakes_come_when_named_and_the_earliest_wins() -> None:
    work = Record()
    queue = started(work)
    queue.wake("a", 5.0)
    queue.wake("a", 3.0)
    queue.wake("a", 7.0)
    await asyncio.sleep(20)
    assert work.began == [(3, "a")]


@virtual_time
async def test_a_wake_now_uses_up_the_moment_that_was_named() -> None:
    work = Record()
    queue = started(work)
    queue.wake("a", 5.0)
    queue.wake("a")
    await asyncio.sleep(20)
    assert work.began == [(0, "a")]


@virtual_time
async def test_no_moment_and_no_failure_name_nothing() -> None:
    work = Record()
    queue = started(work)
    queue.wake("a", None)
    await asyncio.sleep(20)
    assert work.began == []


@virtual_time
async def test_a_moment_that_comes_during_work_means_once_more() -> None:
    work = Record(takes=2.0)
    queue = started(work)
    queue.wake("a")
    await asyncio.sleep(0.5)
    queue.wake("a", 1.0)
    await asyncio.sleep(20)
    assert work.began == [(0, "a"), (2, "a")]


@virtual_time
async def test_failures_delay_longer_each_time_and_success_resets() -> None:
    began: list[float] = []

    async def work(key: str) -> None:
        began.append(now())
        if len(began) not in (4, 5):
            raise KubeError("no")

    queue = started(work, backoff=Backoff(first=1.0, most=4.0))
    queue.wake("a")
    await asyncio.sleep(11)
    assert len(began) == 4  # the fourth succeeds
    gaps = [late - early for early, late in pairwise(began)]
    for gap, ceiling in zip(gaps, (1.0, 2.0, 4.0), strict=True):
        assert ceiling / 2 <= gap <= ceiling
    queue.wake("a")  # the fifth succeeds too
    await asyncio.sleep(1)
    queue.wake("a")  # the sixth fails: back to the first delay
    await asyncio.sleep(1)
    assert len(began) == 7
    assert 0.5 <= began[6] - began[5] <= 1.0


@virtual_time
async def test_a_reported_failure_backs_off_but_keeps_an_earlier_moment_of_the_plan() -> None:
    work = Record(takes=0.0)
    plan: list[tuple[float | None, bool]] = [(None, True), (0.6, True), (None, False)]

    async def reports(key: str) -> None:
        await work(key)
        if plan:
            at, failed = plan.pop(0)
            queue.wake(key, at, failed=failed)

    queue = started(reports, backoff=Backoff(first=1.0, most=1.0))
    queue.wake("a", 0.1)
    await asyncio.sleep(20)
    first, second, third = (at for at, _ in work.began)
    assert first == pytest.approx(0.1)
    assert 0.6 <= second <= 1.1
    assert second == pytest.approx(0.6) or third <= second  # 0.6 had passed: the third pass is at once
    assert third - second < 1.0


@virtual_time
async def test_an_event_wakes_a_failing_key_at_once() -> None:
    began: list[float] = []

    async def work(key: str) -> None:
        began.append(now())
        raise KubeError("no")

    queue = started(work, backoff=Backoff(first=100.0, most=100.0))
    queue.wake("a")
    await asyncio.sleep(1)
    queue.wake("a")
    await asyncio.sleep(1)
    assert began == [0, 1]


@virtual_time
async def test_one_key_raising_does_not_stop_another() -> None:
    work = Record()

    async def mixed(key: str) -> None:
        if key == "bad":
            raise RuntimeError("a bug")
        await work(key)

    queue = started(mixed)
    queue.wake("bad")
    queue.wake("good")
    await asyncio.sleep(1.5)
    assert [key for _, key in work.ended] == ["good"]


@virtual_time
async def test_a_forgotten_key_is_left_alone_until_it_is_woken_again() -> None:
    work = Record()
    queue = started(work)
    queue.wake("busy")
    queue.wake("ready")
    queue.wake("later", 5.0)
    await asyncio.sleep(0.5)
    queue.wake("busy")
    for key in ("busy", "ready", "later"):
        queue.forget(key)
    await asyncio.sleep(10)
    assert work.began == [(0, "busy")]
    queue.wake("later")
    await asyncio.sleep(0)
    assert work.began == [(0, "busy"), (10.5, "later")]


@virtual_time
async def test_keys_woken_before_the_start_wait_for_it() -> None:
    work = Record()
    queue = Queue("test", work, workers=1)
    queue.wake("a")
    queue.wake("b", 1.0)
    await asyncio.sleep(5)
    assert work.began == []
    queue.start()
    await asyncio.sleep(5)
    assert work.began == [(5, "a"), (6, "b")]


@virtual_time
async def test_stopping_lets_work_finish_and_begins_nothing_more() -> None:
    work = Record(takes=2.0)
    queue = started(work)
    queue.wake("a")
    queue.wake("b")
    await asyncio.sleep(1)
    await queue.stop(grace=5.0)
    assert now() == 2.0
    await asyncio.sleep(20)
    assert work.ended == [(2, "a")]


@virtual_time
async def test_work_that_outlasts_the_grace_is_cancelled_and_begun_again_after_a_restart() -> None:
    work = Record(takes=60.0)
    queue = started(work)
    queue.wake("a")
    await asyncio.sleep(1)
    await queue.stop(grace=5.0)
    assert now() == 6.0
    assert work.ended == []
    work.takes = 1.0
    queue.start()
    await asyncio.sleep(5)
    assert work.ended == [(7, "a")]


@virtual_time
async def test_work_that_someone_cancels_before_its_first_step_is_tried_again() -> None:
    work = Record()
    queue = started(work, backoff=Backoff(first=1.0, most=1.0))
    queue.wake("a")
    (task,) = (task for task in asyncio.all_tasks() if task.get_name() == "test a")
    task.cancel()
    await asyncio.sleep(5)
    assert [key for _, key in work.ended] == ["a"]


@virtual_time
async def test_work_that_ignores_cancellation_cannot_hold_up_the_shutdown() -> None:
    async def stubborn(key: str) -> None:
        for _ in range(3):
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                continue

    queue = started(stubborn)
    queue.wake("a")
    await asyncio.sleep(0)
    await queue.stop(grace=5.0)
    assert now() == 6.0


@virtual_time
async def test_the_metrics_tell_depth_age_and_retries() -> None:
    def sample(name: str) -> float:
        return REGISTRY.get_sample_value(f"grove_kube_{name}", {"queue": "measured"}) or 0.0

    async def work(key: str) -> None:
        await asyncio.sleep(1)
        if key == "bad":
            queue.wake(key, None, failed=True)

    queue = Queue("measured", work, workers=1)
    queue.start()
    queue.wake("bad")
    queue.wake("b")
    queue.wake("c")
    await asyncio.sleep(0.5)
    for key in ("b", "c"):
        queue.wake(key)  # a key that waits gets no younger by being woken again
    await asyncio.sleep(0.25)
    assert (sample("queue_depth"), sample("queue_oldest_seconds")) == (2, 0.75)
    await asyncio.sleep(0.5)
    assert sample("work_retries_total") == 1
    assert sample("work_seconds_sum") == 1


async def nothing(key: str) -> None:
    """Work that has nothing to do."""


@virtual_time
async def test_a_queue_without_workers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Queue("idle", nothing, workers=0)
