"""Reads that callers share for a moment."""

from __future__ import annotations

import asyncio

import pytest

from grove.dashboard.shared_reads import SharedReads
from grove.kube.testing.virtual_time import run_in_virtual_time


class Source:
    """Counts reads, each of which takes a second; `bad` fails."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.shared = SharedReads(self._read, 1.0)

    async def _read(self, name: str) -> int:
        self.read.append(name)
        await asyncio.sleep(1.0)
        if name == "bad":
            raise ValueError(name)
        return len(self.read)


def test_callers_share_a_read_for_a_moment() -> None:
    async def play() -> None:
        source = Source()
        assert await asyncio.gather(*(source.shared.get("a") for _ in range(5))) == [1] * 5
        assert await source.shared.get("a") == 1
        assert await source.shared.get("b") == 2
        await asyncio.sleep(1.1)
        assert await source.shared.get("a") == 3
        await asyncio.sleep(1.1)
        assert source.shared._reading == {}

    run_in_virtual_time(play())


def test_caller_that_is_cancelled_does_not_end_the_read() -> None:
    async def play() -> None:
        source = Source()
        first, second = (asyncio.ensure_future(source.shared.get("a")) for _ in range(2))
        await asyncio.sleep(0.5)
        first.cancel()
        assert await second == 1

    run_in_virtual_time(play())


def test_failure_is_shared_and_then_forgotten() -> None:
    async def play() -> None:
        source = Source()
        found = await asyncio.gather(*(source.shared.get("bad") for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in found] == [ValueError] * 3
        await asyncio.sleep(1.1)
        with pytest.raises(ValueError, match="bad"):
            await source.shared.get("bad")
        assert source.read == ["bad", "bad"]

    run_in_virtual_time(play())
