"""The queue's promises about order, moments and metrics, on virtual time."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import REGISTRY

from grove.kube.client.retry import Backoff
from grove.kube.testing.virtual_time import virtual_time
from grove.kube.workqueue.queue import WorkQueue
from tests.kube.workqueue.recorded_work import RecordedWork, now, started


@virtual_time
async def test_ready_keys_are_worked_on_first_come_first_served() -> None:
    work = RecordedWork()
    queue = started(work)
    for key in "abc":
        queue.enqueue(key)
    await asyncio.sleep(10)
    assert work.began == [(0, "a"), (1, "b"), (2, "c")]


@virtual_time
async def test_a_thousand_wakes_of_a_waiting_key_are_one() -> None:
    work = RecordedWork()
    queue = started(work)
    queue.enqueue("a")
    for _ in range(1000):
        queue.enqueue("b")
    await asyncio.sleep(10)
    assert work.began == [(0, "a"), (1, "b")]


@virtual_time
async def test_a_wake_during_work_means_once_more_and_never_at_the_same_time() -> None:
    work = RecordedWork()
    queue = started(work, workers=5)
    queue.enqueue("a")
    await asyncio.sleep(0.5)
    queue.enqueue("a")
    queue.enqueue("a")
    await asyncio.sleep(10)
    assert work.began == [(0, "a"), (1, "a")]


@virtual_time
async def test_an_alarm_that_rings_a_trifle_early_is_set_again() -> None:
    """A loop's timers may fire before their moment by as little as its clock can tell: 0.13 and the way from
    there to 1.14 are a little less than 1.14."""
    work = RecordedWork()
    queue = started(work)
    await asyncio.sleep(0.13)
    queue.enqueue("a", 1.14)
    await asyncio.sleep(10)
    assert [key for _, key in work.began] == ["a"]


@virtual_time
async def test_a_key_that_is_always_awake_does_not_starve_the_others() -> None:
    work = RecordedWork()

    async def restless(key: str) -> None:
        if key == "restless":
            queue.enqueue(key)
        await work(key)

    queue = started(restless)
    queue.enqueue("restless")
    queue.enqueue("patient")
    await asyncio.sleep(2.5)
    await queue.stop(grace=0.0)
    assert [key for _, key in work.began] == ["restless", "patient", "restless"]


@virtual_time
async def test_no_more_than_the_workers_work_at_once() -> None:
    work = RecordedWork()
    queue = started(work, workers=2)
    for key in "abcde":
        queue.enqueue(key)
    await asyncio.sleep(10)
    assert [at for at, _ in work.began] == [0, 0, 1, 1, 2]


@virtual_time
async def test_delayed_wakes_come_when_named_and_the_earliest_wins() -> None:
    work = RecordedWork()
    queue = started(work)
    queue.enqueue("a", 5.0)
    queue.enqueue("a", 3.0)
    queue.enqueue("a", 7.0)
    await asyncio.sleep(20)
    assert work.began == [(3, "a")]


@virtual_time
async def test_a_wake_now_uses_up_the_moment_that_was_named() -> None:
    work = RecordedWork()
    queue = started(work)
    queue.enqueue("a", 5.0)
    queue.enqueue("a")
    await asyncio.sleep(20)
    assert work.began == [(0, "a")]


@virtual_time
async def test_no_moment_and_no_failure_name_nothing() -> None:
    work = RecordedWork()
    queue = started(work)
    queue.enqueue("a", None)
    await asyncio.sleep(20)
    assert work.began == []


@virtual_time
async def test_a_moment_that_comes_during_work_means_once_more() -> None:
    work = RecordedWork(takes=2.0)
    queue = started(work)
    queue.enqueue("a")
    await asyncio.sleep(0.5)
    queue.enqueue("a", 1.0)
    await asyncio.sleep(20)
    assert work.began == [(0, "a"), (2, "a")]


@virtual_time
async def test_a_forgotten_key_is_left_alone_until_it_is_woken_again() -> None:
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
async def test_keys_woken_before_the_start_wait_for_it() -> None:
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
async def test_the_metrics_tell_depth_age_and_retries() -> None:
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
        queue.enqueue(key)  # a key that waits gets no younger by being woken again
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
        WorkQueue("idle", nothing, workers=0)


@virtual_time
async def test_a_key_that_is_set_aside_lends_its_worker_to_another() -> None:
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
    assert [key for _, key in work.began[2:]] == ["a1"], "it counts again from its next turn"


@virtual_time
async def test_a_tenant_with_keys_set_aside_begins_no_more_than_half() -> None:
    """Four workers: four keys of `a` are set aside, and no more of it begin until fewer than two are left."""
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
    assert (len(queue), queue.backlog) == (4, 0), "a worker is free, and none of these may have it"
    await asyncio.sleep(20)
    assert sorted(key for _, key in work.began[8:]) == ["a4", "a5", "a6", "a7"], "when the first have ended"


@virtual_time
async def test_a_tenant_with_keys_set_aside_has_all_workers_while_it_is_alone() -> None:
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
async def test_keys_that_are_set_aside_are_bounded() -> None:
    """Five times as many as there are workers are under way, of however many tenants."""
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
async def test_a_key_whose_back_off_is_reset_begins_again_with_the_shortest() -> None:
    ready_times: list[float] = []

    async def fail(key: str) -> None:
        ready_times.append(now())
        queue.enqueue(key, None, failed=True)

    queue = started(fail, backoff=Backoff(first=1.0, longest=1000.0))
    queue.enqueue("a")
    await asyncio.sleep(200)
    queue.reset_backoff("a")
    queue.enqueue("a")
    count = len(ready_times)
    await asyncio.sleep(5)
    assert len(ready_times) >= count + 2
