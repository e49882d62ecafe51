"""The limit follows the server's answers; slots go to deeds first, and to nobody twice."""

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


def test_the_limit_grows_while_replies_stay_as_fast_as_usual() -> None:
    assert loaded(LatencyGradient(BOUNDS), 0.01, 1000) == 128


def test_the_limit_shrinks_when_replies_get_much_slower_and_comes_back() -> None:
    gradient = LatencyGradient(BOUNDS)
    loaded(gradient, 0.01, 50)
    before = gradient.limit
    slowed = loaded(gradient, 0.2, 30)
    assert slowed < before * 0.75
    assert loaded(gradient, 0.01, 200) > slowed


def test_after_bad_times_slow_replies_are_noticed_again() -> None:
    gradient = LatencyGradient(BOUNDS)
    loaded(gradient, 0.5, 500)  # for long enough to pass for usual
    before = loaded(gradient, 0.01, 60)
    assert loaded(gradient, 0.1, 30) < before * 0.9


def test_a_little_slower_is_no_reason_to_slow_down() -> None:
    gradient = LatencyGradient(BOUNDS)
    before = loaded(gradient, 0.01, 50)
    assert loaded(gradient, 0.015, 50) > before


def test_a_refusal_halves_the_limit_once_for_all_that_were_refused_together() -> None:
    gradient = LatencyGradient(BOUNDS)
    for moment in (10.0, 10.01, 10.02):
        gradient.record_rejection(moment)
    assert gradient.limit == 16
    gradient.record_rejection(11.0)
    assert gradient.limit == 8


def test_the_limit_recovers_after_refusals() -> None:
    gradient = LatencyGradient(BOUNDS)
    gradient.record_rejection(10.0)
    assert loaded(gradient, 0.01, 100) >= 32


def test_the_limit_keeps_its_bounds() -> None:
    gradient = LatencyGradient(BOUNDS)
    for moment in range(100):
        gradient.record_rejection(float(moment))
    assert gradient.limit == 4


def test_a_server_with_little_to_do_teaches_nothing() -> None:
    gradient = LatencyGradient(BOUNDS)
    for _ in range(100):
        gradient.record_reply(0.001, in_flight=2)
    assert gradient.limit == 32
    before = loaded(gradient, 0.05, 20)  # under load replies take longer, and always did
    assert before >= 32


async def _hold(
    limiter: WriteLimiter, priority: WritePriority, name: str, order: list[str], seconds: float = 1.0
) -> None:
    await limiter.acquire(priority)
    order.append(name)
    await asyncio.sleep(seconds)
    limiter.release()


@virtual_time
async def test_deeds_go_before_observations_but_cannot_hold_them_up_for_ever() -> None:
    limiter = WriteLimiter(LimitBounds(1, 1, 1))
    order: list[str] = []
    waiting = [_hold(limiter, WritePriority.STATUS, "o", order)]
    waiting += [_hold(limiter, WritePriority.WRITE, "d", order) for _ in range(10)]
    await asyncio.gather(_hold(limiter, WritePriority.WRITE, "first", order), *waiting)
    assert "".join(order[1:]) == "dddddddoddd"


@virtual_time
@pytest.mark.parametrize("admitted", [False, True], ids=["while waiting", "in the moment of being admitted"])
async def test_whoever_stops_waiting_gives_the_slot_to_the_next(admitted: bool) -> None:
    limiter = WriteLimiter(LimitBounds(1, 1, 1))
    order: list[str] = []
    await limiter.acquire(WritePriority.WRITE)
    impatient = asyncio.create_task(_hold(limiter, WritePriority.WRITE, "impatient", order))
    patient = asyncio.create_task(_hold(limiter, WritePriority.WRITE, "patient", order))
    await asyncio.sleep(0)
    if admitted:
        limiter.release()
        impatient.cancel()
    else:
        impatient.cancel()
        await asyncio.sleep(0)
        limiter.release()
    await asyncio.gather(impatient, patient, return_exceptions=True)
    assert order == ["patient"]
    assert limiter.in_flight == 0


@virtual_time
async def test_a_cut_limit_is_kept_by_those_who_wait() -> None:
    limiter = WriteLimiter(LimitBounds(initial=4, lowest=1, highest=4))
    order: list[str] = []
    holders = [asyncio.create_task(_hold(limiter, WritePriority.WRITE, str(i), order)) for i in range(12)]
    await asyncio.sleep(0.5)
    limiter.record_rejection()
    await asyncio.sleep(1.0)
    assert (len(order), limiter.in_flight) == (6, 2)
    await asyncio.gather(*holders)


@virtual_time
async def test_room_is_told_when_a_write_ends_and_half_of_the_slots_are_free() -> None:
    limiter = WriteLimiter(LimitBounds(initial=4, highest=4))
    told: list[int] = []
    limiter.on_free_slots = told.append
    for _ in range(4):
        await limiter.acquire(WritePriority.WRITE)
    waiting = asyncio.create_task(limiter.acquire(WritePriority.WRITE))
    await asyncio.sleep(0)
    limiter.release()
    await waiting
    assert (told, limiter.free_slots) == ([], 0), "the slot went to the one who waited"
    limiter.release()
    limiter.release()
    assert (told, limiter.free_slots) == ([], 0), "the storm may not be over"
    limiter.release()
    limiter.release()
    assert (told, limiter.free_slots) == ([1, 2], 2)


def test_what_a_sort_always_takes_is_no_sign_of_load() -> None:
    """Replies of 0.5 s behind a webhook among those of 0.01 s; the same without a known floor shrinks it."""

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
QUICK = WriteClass("create", "pods", "quick")


async def _admitted(task: asyncio.Task[bool]) -> bool:
    for _ in range(3):
        await asyncio.sleep(0)
    return task.done()


@virtual_time
async def test_a_slow_write_leaves_its_slot_to_others() -> None:
    limiter = WriteLimiter(LimitBounds(2, 2, 2))
    for _ in range(2):
        assert not await limiter.acquire(WritePriority.WRITE, SLOW)
    waiting = asyncio.create_task(limiter.acquire(WritePriority.WRITE, QUICK))
    assert not await _admitted(waiting)
    assert limiter.move_to_slow(SLOW)
    assert await _admitted(waiting)
    assert limiter.move_to_slow(SLOW)
    assert (limiter.in_flight, limiter.slow_in_flight, limiter.free_slots) == (1, 2, 0)
    limiter.release(QUICK)
    assert limiter.free_slots == 1, "statuses do not wait either"


@virtual_time
async def test_slow_writes_are_bounded() -> None:
    limiter = WriteLimiter(LimitBounds(2, 2, 2))
    for number in range(4):
        write_class = WriteClass("create", "pods", str(number))
        await limiter.acquire(WritePriority.WRITE, write_class)
        assert limiter.move_to_slow(write_class)
    await limiter.acquire(WritePriority.WRITE, QUICK)
    assert not limiter.move_to_slow(QUICK)


@virtual_time
async def test_writes_that_are_known_to_be_slow_take_no_slot_of_others() -> None:
    limiter = WriteLimiter(LimitBounds(4, 4, 4))
    for _ in range(4):
        await limiter.acquire(WritePriority.WRITE, QUICK)
    limiter.latencies.record_late(SLOW)
    waiting = [asyncio.create_task(limiter.acquire(WritePriority.WRITE, SLOW)) for _ in range(5)]
    assert [await _admitted(task) for task in waiting] == [True, True, False, False, False]
    assert (limiter.in_flight, limiter.slow_in_flight) == (4, 2)
    for done in range(3):
        limiter.release(SLOW, slow=True)
        assert await _admitted(waiting[2 + done])
    assert limiter.slow_in_flight == 2


@virtual_time
async def test_slow_writes_of_all_tenants_leave_seats_of_the_server_to_quick_ones() -> None:
    limiter = WriteLimiter(LimitBounds(8, 8, 8))
    sorts = [WriteClass("create", "pods", f"slow-{number}") for number in range(3)]
    for write_class in sorts:
        limiter.latencies.record_late(write_class)
    waiting = [
        asyncio.create_task(limiter.acquire(WritePriority.WRITE, write_class))
        for write_class in sorts
        for _ in range(9)
    ]
    await _admitted(waiting[-1])
    assert limiter.slow_in_flight == 6
    for _ in range(8):
        assert not await limiter.acquire(WritePriority.WRITE, QUICK)


@virtual_time
async def test_writes_that_wait_go_aside_when_their_sort_turns_out_to_be_slow() -> None:
    limiter = WriteLimiter(LimitBounds(2, 2, 2))
    for _ in range(2):
        await limiter.acquire(WritePriority.WRITE, SLOW)
    told: list[int] = []
    crowd = [
        asyncio.create_task(limiter.acquire(WritePriority.WRITE, SLOW, partial(told.append, number)))
        for number in range(9)
    ]
    await _admitted(crowd[0])
    quick = asyncio.create_task(limiter.acquire(WritePriority.WRITE, QUICK))
    limiter.latencies.record_late(SLOW)
    assert limiter.move_to_slow(SLOW)
    assert await _admitted(quick), "whatever the slow tenant has waiting"
    assert told == list(range(9)), "their workers are not needed until then"
    assert not any(task.done() for task in crowd)
    for task in crowd:
        task.cancel()
    await asyncio.wait(crowd)
    limiter.release(SLOW, slow=True)
    limiter.release(SLOW)
    limiter.release(QUICK)
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
    holders += [asyncio.create_task(hold(QUICK)) for _ in range(2)]
    await asyncio.sleep(0)
    limiter.release(SLOW)
    await asyncio.gather(*holders)
    assert order == ["slow", "quick", "slow", "quick", "slow"]


@virtual_time
async def test_one_who_is_cancelled_when_admitted_aside_gives_the_slot_back() -> None:
    limiter = WriteLimiter(LimitBounds(1, 1, 1))
    limiter.latencies.record_late(SLOW)
    await limiter.acquire(WritePriority.WRITE, SLOW)
    waiting = asyncio.create_task(limiter.acquire(WritePriority.WRITE, SLOW))
    await asyncio.sleep(0)
    limiter.release(SLOW, slow=True)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert limiter.slow_in_flight == 0
