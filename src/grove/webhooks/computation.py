"""Where the work on one review is computed: in the event loop, or in a thread if the review is large.

A review of 3 MB takes up to seconds to decode and validate. In the event loop, no other review would be
answered meanwhile. The rules are pure functions, so they can run in any thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from grove import timing

T = TypeVar("T")


class Compute(Protocol):
    """Calls a pure function and returns its result."""

    async def __call__(self, function: Callable[[], T], /) -> T:
        """The result of the function."""
        ...


async def compute_here(function: Callable[[], T], /) -> T:
    """Compute in the event loop: a thread costs more than a small review."""
    return function()


class ReviewThread:
    """Computes in one thread, one function after another."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "review")

    async def compute(self, function: Callable[[], T], /) -> T:
        """Compute in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


def is_large(body: bytes | bytearray) -> bool:
    """Whether a review is computed in the thread: by its size, and by how many values it has at most."""
    return len(body) > timing.SMALL_REVIEW or body.count(b",") > timing.SMALL_REVIEW_VALUES
