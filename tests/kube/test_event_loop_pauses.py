"""The longest pause of the event loop: how it is measured, and for how long it is reported."""

from __future__ import annotations

import asyncio
import time

from prometheus_client import REGISTRY

from grove.kube.event_loop_pauses import Pauses, TimedSelector, timed_loop


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_blocking_callback_is_measured():
    async def blocking() -> None:
        await asyncio.sleep(0)
        time.sleep(0.05)  # noqa: ASYNC251 - the mistake that is measured
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=timed_loop) as runner:
        runner.run(blocking())
        seen = REGISTRY.get_sample_value("grove_event_loop_longest_pause_seconds")
    assert seen is not None
    assert seen >= 0.05


def test_pause_is_the_time_between_two_waits():
    clock = Clock()
    pauses = Pauses(clock)
    with TimedSelector(pauses, clock) as selector:
        selector.select(0)
        clock.now = 5.0
        selector.select(0)
        selector.select(0)
    assert pauses.longest() == 5.0


def test_pause_is_kept_for_one_to_two_minutes():
    clock = Clock()
    pauses = Pauses(clock)
    pauses.record(3.0, 10.0)
    pauses.record(1.0, 50.0)
    clock.now = 59.0
    assert pauses.longest() == 3.0
    pauses.record(0.5, 70.0)
    clock.now = 100.0
    assert pauses.longest() == 3.0
    clock.now = 135.0
    assert pauses.longest() == 0.5
    clock.now = 500.0
    assert pauses.longest() == 0.0
