"""Large plans in a thread: one at a time, with a pause in between; PlanThreadBusy says when to requeue."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from grove.operator.engine.plan_thread import PlanThread, PlanThreadBusy

T = TypeVar("T")


async def run_reserved(thread: PlanThread, function: Callable[[], T]) -> T:
    with thread.reserved():
        return await thread.run(function)


async def test_second_run_raises_busy_and_loop_continues():
    thread, go_on = PlanThread(), threading.Event()
    running = asyncio.create_task(run_reserved(thread, go_on.wait))
    await asyncio.sleep(0)
    with pytest.raises(PlanThreadBusy) as busy, thread.reserved():
        pass
    assert busy.value.at > asyncio.get_running_loop().time()
    go_on.set()
    assert await running


async def test_thread_pauses_for_as_long_as_it_ran():
    thread, loop = PlanThread(), asyncio.get_running_loop()
    began = loop.time()
    assert await run_reserved(thread, lambda: threading.Event().wait(0.05)) is False
    with pytest.raises(PlanThreadBusy) as busy, thread.reserved():
        pass
    assert busy.value.at >= began + 0.1


async def test_exception_in_thread_is_raised():
    def wrong() -> None:
        raise ValueError("of this workload")

    with pytest.raises(ValueError, match="of this workload"):
        await run_reserved(PlanThread(), wrong)


async def test_reservation_ends_without_a_run():
    """A key that does not exist any more computes nothing."""
    thread = PlanThread()
    with thread.reserved():
        pass
    assert await run_reserved(thread, lambda: 7) == 7
