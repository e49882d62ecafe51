"""The limit follows the latency of replies; slots go to writes before statuses, and tenants take turns."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from grove.kube.executor.write_latency import WriteClass
from grove.kube.executor.write_limiter import LatencyGradient, LimitBounds, WriteLimiter, WritePriority
from grove.kube.testing.virtual_time import virtual_time

BOUNDS = LimitBounds(initial=32, lowest=4, highest=128)


def loaded(gradient: LatencyGradient, latency: float, replies: int) -> float:
    for _ in range(replies):
        gradient.record_reply(latency, int(gradient.limit))
    return gradient.limit


def test_limit_grows_while_latency_is_usual() -> None:
    assert loaded(LatencyGradient(BOUNDS), 0.01, 1000) == 128


def test_limit_shrinks_with_slow_replies_and_recovers() -> None:
    gradient = LatencyGradient(BOUNDS)
    loaded(gradient, 0.01, 50)
    before = gradient.limit
    slowed = loaded(gradient, 0.2, 30)
    assert slowed < before * 0.75
    assert loaded(gradient, 0.01, 200) > slowed


def test_slow_replies_are_detected_after_high_load() -> None:
    gradient = LatencyGradient(BOUNDS)
    loaded(gradient, 0.5, 500)  # long enough to count as usual
    before = loaded(gradient, 0.01, 60)
    assert loaded(gradient, 0.1, 30) < before * 0.9


def test_slightly_slower_replies_do_not_lower_limit() -> None:
    gradient = LatencyGradient(BOUNDS)
    before = loaded(gradient, 0.01, 50)
    assert loaded(gradient, 0.015, 50) > before


def test_concurrent_rejections_halve_the_limit_once() -> None:
    gradient = LatencyGradient(BOUNDS)
    for now in (10.0, 10.01, 10.02):
        gradient.record_rejection(now)
    assert gradient.limit == 16
    gradient.record_rejection(11.0)
    assert gradient.limit == 8


def test_limit_recovers_after_rejections() -> None:
    gradient = LatencyGradient(BOUNDS)
    gradient.record_rejection(10.0)
    assert loaded(gradient, 0.01, 100) >= 32


def test_limit_stays_within_bounds() -> None:
    gradient = LatencyGradient(BOUNDS)
    for now in range(100):
        gradient.record_rejection(float(now))
    assert gradient.limit == 4


def test_replies_without_load_do_not_change_limit() -> None:
    gradient = LatencyGradient(BOUNDS)
    for _ in range(100):
        gradient.record_reply(0.001, in_flight=2)
    assert gradient.limit == 32
    before = loaded(gradient, 0.05, 20)  # under load replies take longer from the start
    assert before >= 32


async def _hold(
    limiter: WriteLimiter, priority: WritePriority, name: str, order: list[str], seconds: float = 1.0
) -> None:
    await limiter.acquire(priority)
    order.append(name)
    await asyncio.sleep(seconds)
    limiter.release()


@virtual_time
async def test_writes_go_before_statuses_up_to_seven_times() -> None:
    limiter = WriteLimiter(LimitBounds(1, 1, 1))
    order: list[str] = []
    waiting = [_hold(limiter, WritePriority.STATUS, "s", order)]
    waiting += [_hold(limiter, WritePriority.WRITE, "w", order) for _ in range(10)]
    await asyncio.gather(_hold(limiter, WritePriority.WRITE, "first", order), *waiting)
    assert "".join(order[1:]) == "wwwwwwwswww"


@virtual_time
@pytest.mark.parametrize("admitted", [False, True], ids=["while waiting", "after getting the slot"])
async def test_cancelled_waiter_passes_slot_to_the_next(admitted: bool) -> None:
    limiter = WriteLimiter(LimitBounds(1, 1, 1))
    order: list[str] = []
    await limiter.acquire(WritePriority.WRITE)
    cancelled = asyncio.create_task(_hold(limiter, WritePriority.WRITE, "cancelled", order))
    second = asyncio.create_task(_hold(limiter, WritePriority.WRITE, "second", order))
    await asyncio.sleep(0)
    if admitted:
        limiter.release()
        cancelled.cancel()
    else:
        cancelled.cancel()
        await asyncio.sleep(0)
        limiter.release()
    await asyncio.gather(cancelled, second, return_exceptions=True)
    assert order == ["second"]
    assert limiter.in_flight == 0


@virtual_time
async def test_lowered_limit_applies_to_waiting_writes() -> None:
    limiter = WriteLimiter(LimitBounds(initial=4, lowest=1, highest=4))
    order: list[str] = []
    holders = [asyncio.create_task(_hold(limiter, WritePriority.WRITE, str(i), order)) for i in range(12)]
    await asyncio.sleep(0.5)
    limiter.record_rejection()
    await asyncio.sleep(1.0)
    assert (len(order), limiter.in_flight) == (6, 2)
    await asyncio.gather(*holders)


@virtual_time
async def test_free_slots_are_reported_when_half_are_free() -> None:
    limiter = WriteLimiter(LimitBounds(initial=4, highest=4))
    reported: list[int] = []
    limiter.on_free_slots = reported.append
    for _ in range(4):
        await limiter.acquire(WritePriority.WRITE)
    waiting = asyncio.create_task(limiter.acquire(WritePriority.WRITE))
    await asyncio.sleep(0)
    limiter.release()
    await waiting
    assert (reported, limiter.free_slots) == ([], 0), "the slot goes to the waiting write"
    limiter.release()
    limiter.release()
    assert (reported, limiter.free_slots) == ([], 0), "the load may not be over"
    limiter.release()
    limiter.release()
    assert (reported, limiter.free_slots) == ([1, 2], 2)


def test_latency_floor_of_class_is_no_sign_of_load() -> None:
    """Replies of 0.5 s because of a webhook among those of 0.01 s; without the floor they lower the limit."""

    def mixed(floor: float) -> float:
        gradient = LatencyGradient(BOUNDS)
        loaded(gradient, 0.01, 50)
        for _ in range(30):
            gradient.record_reply(0.5, int(gradient.limit), floor)
        return gradient.limit

    before = loaded(LatencyGradient(BOUNDS), 0.01, 50)
    assert mixed(0.0) < before * 0.75
    assert mixed(0.5) > before


SLOW = WriteClass("create", "pods", "slow")
FAST = WriteClass("create", "pods", "fast")


async def _admitted(task: asyncio.Task[bool]) -> bool:
    for _ in range(3):
        await asyncio.sleep(0)
    return task.done()


@virtual_time
async def test_slow_write_frees_its_slot() -> None:
    limiter = WriteLimiter(LimitBounds(2, 2, 2))
    for _ in range(2):
        assert not await limiter.acquire(WritePriority.WRITE, SLOW)
    waiting = asyncio.create_task(limiter.acquire(WritePriority.WRITE, FAST))
    assert not await _admitted(waiting)
    assert limiter.move_to_slow(SLOW)
    assert await _admitted(waiting)
    assert limiter.move_to_slow(SLOW)
    assert (limiter.in_flight, limiter.slow_in_flight, limiter.free_slots) == (1, 2, 0)
    limiter.release(FAST)
    assert limiter.free_slots == 1, "slow writes occupy no free slot"


@virtual_time
async def test_slow_writes_are_bounded() -> None:
    limiter = WriteLimiter(LimitBounds(2, 2, 2))
    for number in range(4):
        write_class = WriteClass("create", "pods", str(number))
        await limiter.acquire(WritePriority.WRITE, write_class)
        assert limiter.move_to_slow(write_class)
    await limiter.acquire(WritePriority.WRITE, FAST)
    assert not limiter.move_to_slow(FAST)


@virtual_time
async def test_known_slow_writes_use_no_fast_slot() -> None:
    limiter = WriteLimiter(LimitBounds(4, 4, 4))
    for _ in range(4):
        await limiter.acquire(WritePriority.WRITE, FAST)
    limiter.latencies.record_late(SLOW)
    waiting = [asyncio.create_task(limiter.acquire(WritePriority.WRITE, SLOW)) for _ in range(5)]
    assert [await _admitted(task) for task in waiting] == [True, True, False, False, False]
    assert (limiter.in_flight, limiter.slow_in_flight) == (4, 2)
    for done in range(3):
        limiter.release(SLOW, slow=True)
        assert await _admitted(waiting[2 + done])
    assert limiter.slow_in_flight == 2


@virtual_time
async def test_slow_writes_of_all_tenants_leave_slots_to_fast() -> None:
    limiter = WriteLimiter(LimitBounds(8, 8, 8))
    classes = [WriteClass("create", "pods", f"slow-{number}") for number in range(3)]
    for write_class in classes:
        limiter.latencies.record_late(write_class)
    waiting = [
        asyncio.create_task(limiter.acquire(WritePriority.WRITE, write_class))
        for write_class in classes
        for _ in range(9)
    ]
    await _admitted(waiting[-1])
    assert limiter.slow_in_flight == 6
    for _ in range(8):
        assert not await limiter.acquire(WritePriority.WRITE, FAST)


@virtual_time
async def test_waiting_writes_move_to_slow_slots() -> None:
    limiter = WriteLimiter(LimitBounds(2, 2, 2))
    for _ in range(2):
        await limiter.acquire(WritePriority.WRITE, SLOW)
    slow: list[int] = []
    crowd = [
        asyncio.create_task(limiter.acquire(WritePriority.WRITE, SLOW, partial(slow.append, number)))
        for number in range(9)
    ]
    await _admitted(crowd[0])
    fast = asyncio.create_task(limiter.acquire(WritePriority.WRITE, FAST))
    limiter.latencies.record_late(SLOW)
    assert limiter.move_to_slow(SLOW)
    assert await _admitted(fast), "however many writes of the slow tenant wait"
    assert slow == list(range(9)), "their workers are freed"
    assert not any(task.done() for task in crowd)
    for task in crowd:
        task.cancel()
    await asyncio.wait(crowd)
    limiter.release(SLOW, slow=True)
    limiter.release(SLOW)
    limiter.release(FAST)
    assert (limiter.in_flight, limiter.slow_in_flight) == (0, 0)


@virtual_time
async def test_tenants_take_turns() -> None:
    limiter = WriteLimiter(LimitBounds(1, 1, 1))
    order: list[str] = []

    async def hold(write_class: WriteClass) -> None:
        await limiter.acquire(WritePriority.WRITE, write_class)
        order.append(write_class.namespace)
        limiter.release(write_class)

    await limiter.acquire(WritePriority.WRITE, SLOW)
    holders = [asyncio.create_task(hold(SLOW)) for _ in range(3)]
    holders += [asyncio.create_task(hold(FAST)) for _ in range(2)]
    await asyncio.sleep(0)
    limiter.release(SLOW)
    await asyncio.gather(*holders)
    assert order == ["slow", "fast", "slow", "fast", "slow"]


@virtual_time
async def test_cancelled_slow_waiter_gives_slot_back() -> None:
    limiter = WriteLimiter(LimitBounds(1, 1, 1))
    limiter.latencies.record_late(SLOW)
    await limiter.acquire(WritePriority.WRITE, SLOW)
    waiting = asyncio.create_task(limiter.acquire(WritePriority.WRITE, SLOW))
    await asyncio.sleep(0)
    limiter.release(SLOW, slow=True)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert limiter.slow_in_flight == 0
