"""The due times of delayed keys in the work queue: one time per key, the earliest wins. Has no clock."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from grove import timing

K = TypeVar("K", bound=Hashable)


class DelayQueue(Generic[K]):
    """When each key is due.

    The mapping has the valid times; the heap keeps outdated entries until they reach its top. A key that is
    enqueued often, each time for hours later, would fill the heap, so it is rebuilt when most is outdated.
    """

    def __init__(self) -> None:
        self._due_times: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._pushed = 0  # breaks ties in insertion order, so that keys are never compared

    def __len__(self) -> int:
        return len(self._due_times)

    def set(self, key: K, at: float) -> None:
        """Make the key due at `at`, unless it is due earlier."""
        known = self._due_times.get(key)
        if known is not None and known <= at:
            return
        self._due_times[key] = at
        self._pushed += 1
        heapq.heappush(self._heap, (at, self._pushed, key))
        if len(self._heap) > 2 * len(self._due_times) + timing.OUTDATED_HEAP_ENTRIES:
            self._rebuild()

    def remove(self, key: K) -> None:
        """Remove the key's due time, if it has one."""
        self._due_times.pop(key, None)

    def next_due(self) -> float | None:
        """The earliest due time of all keys."""
        self._drop_outdated()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float) -> Iterator[K]:
        """Remove and yield each key that is due, earliest first."""
        while (at := self.next_due()) is not None and at <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due_times[key]
            yield key

    def _drop_outdated(self) -> None:
        while self._heap and self._outdated(self._heap[0]):
            heapq.heappop(self._heap)

    def _outdated(self, entry: tuple[float, int, K]) -> bool:
        return self._due_times.get(entry[2]) != entry[0]

    def _rebuild(self) -> None:
        self._heap = [entry for entry in self._heap if not self._outdated(entry)]
        heapq.heapify(self._heap)
