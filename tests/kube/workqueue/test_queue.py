"""The work queue on virtual time: order, due times, detached keys and metrics."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import REGISTRY

from grove.kube.client.retry import Backoff
from grove.kube.testing.virtual_time import virtual_time
from grove.kube.workqueue.queue import WorkQueue
from tests.kube.workqueue.recorded_work import RecordedWork, now, started


@virtual_time
async def test_ready_keys_are_first_come_first_served() -> None:
    work = RecordedWork()
    queue = started(work)
    for key in "abc":
        queue.enqueue(key)
    await asyncio.sleep(10)
    assert work.began == [(0, "a"), (1, "b"), (2, "c")]


@virtual_time
async def test_thousand_enqueues_of_waiting_key_are_one() -> None:
    work = RecordedWork()
    queue = started(work)
    queue.enqueue("a")
    for _ in range(1000):
        queue.enqueue("b")
    await asyncio.sleep(10)
    assert work.began == [(0, "a"), (1, "b")]


@virtual_time
async def test_enqueue_during_work_repeats_it_afterwards() -> None:
    work = RecordedWork()
    queue = started(work, workers=5)
    queue.enqueue("a")
    await asyncio.sleep(0.5)
    queue.enqueue("a")
    queue.enqueue("a")
    await asyncio.sleep(10)
    assert work.began == [(0, "a"), (1, "a")]


@virtual_time
async def test_timer_that_fires_early_is_set_again() -> None:
    """A timer of the loop may fire early by the resolution of its clock: 0.13 + (1.14 - 0.13) is slightly
    less than 1.14."""
    work = RecordedWork()
    queue = started(work)
    await asyncio.sleep(0.13)
    queue.enqueue("a", 1.14)
    await asyncio.sleep(10)
    assert [key for _, key in work.began] == ["a"]


@virtual_time
async def test_always_ready_key_does_not_starve_others() -> None:
    work = RecordedWork()

    async def enqueue_again(key: str) -> None:
        if key == "always":
            queue.enqueue(key)
        await work(key)

    queue = started(enqueue_again)
    queue.enqueue("always")
    queue.enqueue("other")
    await asyncio.sleep(2.5)
    await queue.stop(grace=0.0)
    assert [key for _, key in work.began] == ["always", "other", "always"]


@virtual_time
async def test_parallel_work_is_limited_to_workers() -> None:
    work = RecordedWork()
    queue = started(work, workers=2)
    for key in "abcde":
        queue.enqueue(key)
    await asyncio.sleep(10)
    assert [at for at, _ in work.began] == [0, 0, 1, 1, 2]


@virtual_time
async def test_earliest_delayed_enqueue_wins() -> None:
    work = RecordedWork()
    queue = started(work)
    queue.enqueue("a", 5.0)
    queue.enqueue("a", 3.0)
    queue.enqueue("a", 7.0)
    await asyncio.sleep(20)
    assert work.began == [(3, "a")]


@virtual_time
async def test_immediate_enqueue_clears_delayed_one() -> None:
    work = RecordedWork()
    queue = started(work)
    queue.enqueue("a", 5.0)
    queue.enqueue("a")
    await asyncio.sleep(20)
    assert work.began == [(0, "a")]


@virtual_time
async def test_enqueue_without_time_or_failure_does_nothing() -> None:
    work = RecordedWork()
    queue = started(work)
    queue.enqueue("a", None)
    await asyncio.sleep(20)
    assert work.began == []


@virtual_time
async def test_due_time_during_work_repeats_it() -> None:
    work = RecordedWork(takes=2.0)
    queue = started(work)
    queue.enqueue("a")
    await asyncio.sleep(0.5)
    queue.enqueue("a", 1.0)
    await asyncio.sleep(20)
    assert work.began == [(0, "a"), (2, "a")]


@virtual_time
async def test_forgotten_key_waits_until_enqueued_again() -> None:
    work = RecordedWork()
    queue = started(work)
    queue.enqueue("busy")
    queue.enqueue("ready")
    queue.enqueue("later", 5.0)
    await asyncio.sleep(0.5)
    queue.enqueue("busy")
    for key in ("busy", "ready", "later"):
        queue.forget(key)
    await asyncio.sleep(10)
    assert work.began == [(0, "busy")]
    queue.enqueue("later")
    await asyncio.sleep(0)
    assert work.began == [(0, "busy"), (10.5, "later")]


@virtual_time
async def test_keys_enqueued_before_start_wait_for_it() -> None:
    work = RecordedWork()
    queue = WorkQueue("test", work, workers=1)
    queue.enqueue("a")
    queue.enqueue("b", 1.0)
    await asyncio.sleep(5)
    assert work.began == []
    queue.start()
    await asyncio.sleep(5)
    assert work.began == [(5, "a"), (6, "b")]


@virtual_time
async def test_metrics_report_depth_age_and_retries() -> None:
    def sample(name: str) -> float:
        return REGISTRY.get_sample_value(f"grove_kube_{name}", {"queue": "measured"}) or 0.0

    async def work(key: str) -> None:
        await asyncio.sleep(1)
        if key == "bad":
            queue.enqueue(key, None, failed=True)

    queue = WorkQueue("measured", work, workers=1)
    queue.start()
    queue.enqueue("bad")
    queue.enqueue("b")
    queue.enqueue("c")
    await asyncio.sleep(0.5)
    for key in ("b", "c"):
        queue.enqueue(key)  # another enqueue does not change the age of a waiting key
    await asyncio.sleep(0.25)
    assert (sample("queue_depth"), sample("queue_oldest_seconds")) == (2, 0.75)
    await asyncio.sleep(0.5)
    assert sample("work_retries_total") == 1
    assert sample("work_seconds_sum") == 1


async def nothing(key: str) -> None:
    """Work that has nothing to do."""


@virtual_time
async def test_queue_without_workers_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least one"):
        WorkQueue("idle", nothing, workers=0)


@virtual_time
async def test_detached_key_frees_its_worker() -> None:
    work = RecordedWork()
    queue = started(work, tenant=lambda key: key[0])
    for key in ("a1", "b1"):
        queue.enqueue(key)
    await asyncio.sleep(0.25)
    queue.detach("a1")
    await asyncio.sleep(10)
    assert work.began == [(0, "a1"), (0.25, "b1")]
    queue.enqueue("a1")
    queue.enqueue("b1")
    await asyncio.sleep(0.5)
    assert [key for _, key in work.began[2:]] == ["a1"], "its next work occupies a worker again"


@virtual_time
async def test_tenant_with_detached_keys_starts_half_at_most() -> None:
    """Four workers: four keys of `a` are detached, and no other key of `a` starts until fewer than two
    run."""
    work = RecordedWork(takes=10.0)
    queue = started(work, workers=4, tenant=lambda key: key[0])
    for number in range(8):
        queue.enqueue(f"a{number}")
    await asyncio.sleep(1)
    for number in range(4):
        queue.detach(f"a{number}")
    for number in range(4):
        queue.enqueue(f"b{number}")
    await asyncio.sleep(1)
    assert work.began[4:] == [(1, "b0"), (1, "b1"), (1, "b2"), (1, "b3")]
    assert (len(queue), queue.backlog) == (4, 4)
    queue.detach("b0")
    assert (len(queue), queue.backlog) == (4, 0), (
        "a worker is free, and the tenant of these keys has its share"
    )
    await asyncio.sleep(20)
    assert sorted(key for _, key in work.began[8:]) == ["a4", "a5", "a6", "a7"], "after the first have ended"


@virtual_time
async def test_tenant_with_detached_keys_alone_uses_all_workers() -> None:
    work = RecordedWork(takes=10.0)
    queue = started(work, workers=4, tenant=lambda key: key[0])
    for number in range(3):
        queue.enqueue(f"a{number}")
    await asyncio.sleep(1)
    for number in range(3):
        queue.detach(f"a{number}")
    for number in range(3, 8):
        queue.enqueue(f"a{number}")
    await asyncio.sleep(1)
    assert len(work.began) == 4
    queue.enqueue("b0")
    await asyncio.sleep(1)
    assert work.began[4:] == [(2, "b0")]


@virtual_time
async def test_detached_keys_are_bounded() -> None:
    """At most five times as many keys as workers are worked on, of any number of tenants."""
    work = RecordedWork(takes=10.0)
    queue = started(work, workers=2, tenant=lambda key: key)
    for number in range(50):
        queue.enqueue(str(number))
    for _ in range(50):
        await asyncio.sleep(0.01)
        for _, key in list(work.began):
            queue.detach(key)
    assert len(work.began) == 10


@virtual_time
async def test_reset_backoff_starts_with_shortest_pause() -> None:
    started_at: list[float] = []

    async def fail(key: str) -> None:
        started_at.append(now())
        queue.enqueue(key, None, failed=True)

    queue = started(fail, backoff=Backoff(first=1.0, longest=1000.0))
    queue.enqueue("a")
    await asyncio.sleep(200)
    queue.reset_backoff("a")
    queue.enqueue("a")
    count = len(started_at)
    await asyncio.sleep(5)
    assert len(started_at) >= count + 2
