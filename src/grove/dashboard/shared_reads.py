"""Reads that callers share for a moment: many pages ask for the same at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedReads(Generic[T]):
    """By name, what is being read, or was read a moment ago. A failure is shared as well."""

    def __init__(self, read: Callable[[str], Awaitable[T]], kept: float) -> None:
        self._read, self._kept = read, kept
        self._reading: dict[str, asyncio.Task[T]] = {}

    async def get(self, name: str) -> T:
        """What is read by a name. A caller that is cancelled does not end the read of others."""
        task = self._reading.get(name)
        if task is None:
            task = self._reading[name] = asyncio.ensure_future(self._start(name))
            task.add_done_callback(lambda done: self._forget_later(name, done))
        return await asyncio.shield(task)

    async def _start(self, name: str) -> T:
        return await self._read(name)

    def _forget_later(self, name: str, done: asyncio.Task[T]) -> None:
        if not done.cancelled():
            done.exception()  # its callers have it, unless all of them were cancelled
        asyncio.get_running_loop().call_later(self._kept, self._reading.pop, name, None)

    def close(self) -> None:
        """End what is being read."""
        for task in self._reading.values():
            task.cancel()
