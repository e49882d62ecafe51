"""The limit follows the server's answers; slots go to deeds first, and to nobody twice."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from grove.kube.latency import Sort
from grove.kube.limiter import Bounds, Gradient, Limiter, Urgency
from grove.kube.testing import virtual_time

BOUNDS = Bounds(initial=32, lowest=4, highest=128)


def loaded(gradient: Gradient, latency: float, replies: int) -> float:
    for _ in range(replies):
        gradient.replied(latency, int(gradient.limit))
    return gradient.limit


def test_the_limit_grows_while_replies_stay_as_fast_as_usual() -> None:
    assert loaded(Gradient(BOUNDS), 0.01, 1000) == 128


def test_the_limit_shrinks_when_replies_get_much_slower_and_comes_back() -> None:
    gradient = Gradient(BOUNDS)
    loaded(gradient, 0.01, 50)
    before = gradient.limit
    slowed = loaded(gradient, 0.2, 30)
    assert slowed < before * 0.75
    assert loaded(gradient, 0.01, 200) > slowed


def test_after_bad_times_slow_replies_are_noticed_again() -> None:
    gradient = Gradient(BOUNDS)
    loaded(gradient, 0.5, 500)  # for long enough to pass for usual
    before = loaded(gradient, 0.01, 60)
    assert loaded(gradient, 0.1, 30) < before * 0.9


def test_a_little_slower_is_no_reason_to_slow_down() -> None:
    gradient = Gradient(BOUNDS)
    before = loaded(gradient, 0.01, 50)
    assert loaded(gradient, 0.015, 50) > before


def test_a_refusal_halves_the_limit_once_for_all_that_were_refused_together() -> None:
    gradient = Gradient(BOUNDS)
    for moment in (10.0, 10.01, 10.02):
        gradient.refused(moment)
    assert gradient.limit == 16
    gradient.refused(11.0)
    assert gradient.limit == 8


def test_the_limit_recovers_after_refusals() -> None:
    gradient = Gradient(BOUNDS)
    gradient.refused(10.0)
    assert loaded(gradient, 0.01, 100) >= 32


def test_the_limit_keeps_its_bounds() -> None:
    gradient = Gradient(BOUNDS)
    for moment in range(100):
        gradient.refused(float(moment))
    assert gradient.limit == 4


def test_a_server_with_little_to_do_teaches_nothing() -> None:
    gradient = Gradient(BOUNDS)
    for _ in range(100):
        gradient.replied(0.001, in_flight=2)
    assert gradient.limit == 32
    before = loaded(gradient, 0.05, 20)  # under load replies take longer, and always did
    assert before >= 32


async def _hold(
    limiter: Limiter, urgency: Urgency, name: str, order: list[str], seconds: float = 1.0
) -> None:
    await limiter.acquire(urgency)
    order.append(name)
    await asyncio.sleep(seconds)
    limiter.release()


@virtual_time
async def test_deeds_go_before_observations_but_cannot_hold_them_up_for_ever() -> None:
    limiter = Limiter(Bounds(1, 1, 1))
    order: list[str] = []
    waiting = [_hold(limiter, Urgency.OBSERVATION, "o", order)]
    waiting += [_hold(limiter, Urgency.DEED, "d", order) for _ in range(10)]
    await asyncio.gather(_hold(limiter, Urgency.DEED, "first", order), *waiting)
    assert "".join(order[1:]) == "dddddddoddd"


@virtual_time
@pytest.mark.parametrize("admitted", [False, True], ids=["while waiting", "in the moment of being admitted"])
async def test_whoever_stops_waiting_gives_the_slot_to_the_next(admitted: bool) -> None:
    limiter = Limiter(Bounds(1, 1, 1))
    order: list[str] = []
    await limiter.acquire(Urgency.DEED)
    impatient = asyncio.create_task(_hold(limiter, Urgency.DEED, "impatient", order))
    patient = asyncio.create_task(_hold(limiter, Urgency.DEED, "patient", order))
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
    limiter = Limiter(Bounds(initial=4, lowest=1, highest=4))
    order: list[str] = []
    holders = [asyncio.create_task(_hold(limiter, Urgency.DEED, str(i), order)) for i in range(12)]
    await asyncio.sleep(0.5)
    limiter.refused()
    await asyncio.sleep(1.0)
    assert (len(order), limiter.in_flight) == (6, 2)
    await asyncio.gather(*holders)


@virtual_time
async def test_room_is_told_when_a_write_ends_and_half_of_the_slots_are_free() -> None:
    limiter = Limiter(Bounds(initial=4, highest=4))
    told: list[int] = []
    limiter.on_room = told.append
    for _ in range(4):
        await limiter.acquire(Urgency.DEED)
    waiting = asyncio.create_task(limiter.acquire(Urgency.DEED))
    await asyncio.sleep(0)
    limiter.release()
    await waiting
    assert (told, limiter.room) == ([], 0), "the slot went to the one who waited"
    limiter.release()
    limiter.release()
    assert (told, limiter.room) == ([], 0), "the storm may not be over"
    limiter.release()
    limiter.release()
    assert (told, limiter.room) == ([1, 2], 2)


def test_what_a_sort_always_takes_is_no_sign_of_load() -> None:
    """Replies of 0.5 s behind a webhook among those of 0.01 s; the same without a known floor shrinks it."""

    def mixed(floor: float) -> float:
        gradient = Gradient(BOUNDS)
        loaded(gradient, 0.01, 50)
        for _ in range(30):
            gradient.replied(0.5, int(gradient.limit), floor)
        return gradient.limit

    before = loaded(Gradient(BOUNDS), 0.01, 50)
    assert mixed(0.0) < before * 0.75
    assert mixed(0.5) > before


SLOW = Sort("create", "pods", "slow")
QUICK = Sort("create", "pods", "quick")


async def _admitted(task: asyncio.Task[bool]) -> bool:
    for _ in range(3):
        await asyncio.sleep(0)
    return task.done()


@virtual_time
async def test_a_slow_write_leaves_its_slot_to_others() -> None:
    limiter = Limiter(Bounds(2, 2, 2))
    for _ in range(2):
        assert not await limiter.acquire(Urgency.DEED, SLOW)
    waiting = asyncio.create_task(limiter.acquire(Urgency.DEED, QUICK))
    assert not await _admitted(waiting)
    assert limiter.set_aside(SLOW)
    assert await _admitted(waiting)
    assert limiter.set_aside(SLOW)
    assert (limiter.in_flight, limiter.aside, limiter.room) == (1, 2, 0)
    limiter.release(QUICK)
    assert limiter.room == 1, "statuses do not wait either"


@virtual_time
async def test_slow_writes_are_bounded() -> None:
    limiter = Limiter(Bounds(2, 2, 2))
    for number in range(4):
        sort = Sort("create", "pods", str(number))
        await limiter.acquire(Urgency.DEED, sort)
        assert limiter.set_aside(sort)
    await limiter.acquire(Urgency.DEED, QUICK)
    assert not limiter.set_aside(QUICK)


@virtual_time
async def test_writes_that_are_known_to_be_slow_take_no_slot_of_others() -> None:
    limiter = Limiter(Bounds(4, 4, 4))
    for _ in range(4):
        await limiter.acquire(Urgency.DEED, QUICK)
    limiter.latencies.late(SLOW)
    waiting = [asyncio.create_task(limiter.acquire(Urgency.DEED, SLOW)) for _ in range(5)]
    assert [await _admitted(task) for task in waiting] == [True, True, False, False, False]
    assert (limiter.in_flight, limiter.aside) == (4, 2)
    for done in range(3):
        limiter.release(SLOW, aside=True)
        assert await _admitted(waiting[2 + done])
    assert limiter.aside == 2


@virtual_time
async def test_slow_writes_of_all_tenants_leave_seats_of_the_server_to_quick_ones() -> None:
    limiter = Limiter(Bounds(8, 8, 8))
    sorts = [Sort("create", "pods", f"slow-{number}") for number in range(3)]
    for sort in sorts:
        limiter.latencies.late(sort)
    waiting = [asyncio.create_task(limiter.acquire(Urgency.DEED, sort)) for sort in sorts for _ in range(9)]
    await _admitted(waiting[-1])
    assert limiter.aside == 6
    for _ in range(8):
        assert not await limiter.acquire(Urgency.DEED, QUICK)


@virtual_time
async def test_writes_that_wait_go_aside_when_their_sort_turns_out_to_be_slow() -> None:
    limiter = Limiter(Bounds(2, 2, 2))
    for _ in range(2):
        await limiter.acquire(Urgency.DEED, SLOW)
    told: list[int] = []
    crowd = [
        asyncio.create_task(limiter.acquire(Urgency.DEED, SLOW, partial(told.append, number)))
        for number in range(9)
    ]
    await _admitted(crowd[0])
    quick = asyncio.create_task(limiter.acquire(Urgency.DEED, QUICK))
    limiter.latencies.late(SLOW)
    assert limiter.set_aside(SLOW)
    assert await _admitted(quick), "whatever the slow tenant has waiting"
    assert told == list(range(9)), "their workers are not needed until then"
    assert not any(task.done() for task in crowd)
    for task in crowd:
        task.cancel()
    await asyncio.wait(crowd)
    limiter.release(SLOW, aside=True)
    limiter.release(SLOW)
    limiter.release(QUICK)
    assert (limiter.in_flight, limiter.aside) == (0, 0)


@virtual_time
async def test_tenants_take_turns() -> None:
    limiter = Limiter(Bounds(1, 1, 1))
    order: list[str] = []

    async def hold(sort: Sort) -> None:
        await limiter.acquire(Urgency.DEED, sort)
        order.append(sort.namespace)
        limiter.release(sort)

    await limiter.acquire(Urgency.DEED, SLOW)
    holders = [asyncio.create_task(hold(SLOW)) for _ in range(3)]
    holders += [asyncio.create_task(hold(QUICK)) for _ in range(2)]
    await asyncio.sleep(0)
    limiter.release(SLOW)
    await asyncio.gather(*holders)
    assert order == ["slow", "quick", "slow", "quick", "slow"]


@virtual_time
async def test_one_who_is_cancelled_when_admitted_aside_gives_the_slot_back() -> None:
    limiter = Limiter(Bounds(1, 1, 1))
    limiter.latencies.late(SLOW)
    await limiter.acquire(Urgency.DEED, SLOW)
    waiting = asyncio.create_task(limiter.acquire(Urgency.DEED, SLOW))
    await asyncio.sleep(0)
    limiter.release(SLOW, aside=True)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert limiter.aside == 0
