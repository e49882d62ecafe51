"""The event loop with virtual time."""

import asyncio
import time

import pytest

from grove.kube.testing.virtual_time import Deadlock, run_in_virtual_time


def test_virtual_hour_passes_at_once_and_in_order() -> None:
    seen: list[tuple[str, float]] = []

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((name, asyncio.get_running_loop().time()))

    async def main() -> None:
        await asyncio.gather(wait("hour", 3600), wait("minute", 60))

    began = time.monotonic()
    run_in_virtual_time(main())
    assert seen == [("minute", 60.0), ("hour", 3600.0)]
    assert time.monotonic() - began < 5


def test_wait_without_timer_raises_deadlock() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="never resumed"):
        run_in_virtual_time(main())
