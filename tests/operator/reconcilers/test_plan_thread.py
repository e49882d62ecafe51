"""Large plans in a thread: one at a time, with a pause in between; PlanThreadBusy says when to requeue."""

from __future__ import annotations

import asyncio
import threading

import pytest

from grove.operator.reconcilers.plan_thread import PlanThread, PlanThreadBusy


async def test_second_run_raises_busy_and_loop_continues():
    offload, go_on = PlanThread(), threading.Event()
    running = asyncio.create_task(offload.run(go_on.wait))
    await asyncio.sleep(0)
    with pytest.raises(PlanThreadBusy) as busy:
        await offload.run(int)
    assert busy.value.at > asyncio.get_running_loop().time()
    go_on.set()
    assert await running


async def test_thread_pauses_for_as_long_as_it_ran():
    offload, loop = PlanThread(), asyncio.get_running_loop()
    began = loop.time()
    assert await offload.run(lambda: threading.Event().wait(0.05)) is False
    with pytest.raises(PlanThreadBusy) as busy:
        offload.reserve()
    assert busy.value.at >= began + 0.1


async def test_exception_in_thread_is_raised():
    offload = PlanThread()

    def wrong() -> None:
        raise ValueError("of this workload")

    with pytest.raises(ValueError, match="of this workload"):
        await offload.run(wrong)


async def test_reserved_thread_is_not_taken_by_another_key():
    thread = PlanThread()
    thread.reserve()
    with pytest.raises(PlanThreadBusy):
        await thread.run(int)
    assert await thread.run(lambda: 7, reserved=True) == 7
    thread.release()
