"""Decides which ready key of the work queue is next: owners take turns, and started workloads go first.

With first come, first served, a small workload would wait for all keys of a large one, and a workload that
has been started would wait until all others have been started as well. So each owner of keys has a lane of
its own, and the lanes take turns; within a lane it is first come, first served. Keys of started workloads are
preferred to new ones, though only so many times in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from grove import timing

K = TypeVar("K", bound=Hashable)


class QueueLane(NamedTuple):
    """The lane that a key waits in: its owner, and whether the workload has been started."""

    owner: Hashable
    started: bool = True


class FairQueue(Generic[K]):
    """The ready keys, each with the time since when it is ready."""

    def __init__(self, lane_of: Callable[[K], QueueLane]) -> None:
        self._lane_of = lane_of
        self._started: _Lanes[K] = _Lanes()
        self._new: _Lanes[K] = _Lanes()
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self._started) + len(self._new)

    def add(self, key: K, since: float) -> None:
        """Add a ready key; one that waits already keeps its place."""
        owner, started = self._lane_of(key)
        if not self._started.holds(owner, key) and not self._new.holds(owner, key):
            (self._started if started else self._new).add(owner, key, since)

    def pop(self, excluded: Callable[[K], bool] | None = None) -> K | None:
        """Remove and return the next key that is not `excluded`; None if there is none."""
        overdue = bool(self._new) and self._in_a_row == timing.STARTED_KEYS_IN_A_ROW
        if not overdue and (key := self._started.pop(excluded)) is not None:
            self._in_a_row = min(self._in_a_row + 1, timing.STARTED_KEYS_IN_A_ROW)
            return key
        self._in_a_row = 0
        key = self._new.pop(excluded)
        return self._started.pop(excluded) if key is None else key

    def remove(self, key: K) -> None:
        """Remove a key."""
        owner = self._lane_of(key).owner
        self._started.drop(owner, key)
        self._new.drop(owner, key)

    def ready_times(self) -> Iterator[float]:
        """Since when each key is ready."""
        return chain(self._started.ready_times(), self._new.ready_times())


class _Lanes(Generic[K]):
    """A lane for each owner, the next one first."""

    def __init__(self) -> None:
        self._lanes: dict[Hashable, dict[K, float]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def holds(self, owner: Hashable, key: K) -> bool:
        return key in self._lanes.get(owner, ())

    def add(self, owner: Hashable, key: K, since: float) -> None:
        self._lanes.setdefault(owner, {})[key] = since
        self._size += 1

    def pop(self, excluded: Callable[[K], bool] | None) -> K | None:
        for owner, lane in self._lanes.items():
            key = next(iter(lane))
            if excluded is not None and excluded(key):
                continue
            del self._lanes[owner], lane[key]
            self._size -= 1
            if lane:
                self._lanes[owner] = lane  # at the end
            return key
        return None

    def drop(self, owner: Hashable, key: K) -> None:
        if self.holds(owner, key):
            del self._lanes[owner][key]
            self._size -= 1
            if not self._lanes[owner]:
                del self._lanes[owner]

    def ready_times(self) -> Iterator[float]:
        return chain.from_iterable(lane.values() for lane in self._lanes.values())
