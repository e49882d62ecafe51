"""Who is next: owners take turns, and what was begun goes before what is new.

First come, first served would let a small workload wait until a large one has been seen to, and whatever has
been begun wait until everything else has been begun as well. So each owner of keys has a lane of its own, and
the lanes take turns; within a lane it is first come, first served. Keys that have been begun are preferred to
those that have not, though only so many times in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

_STARTED_IN_A_ROW = 7


class QueueLane(NamedTuple):
    """Where a key has to wait. Whoever is alone in his lane just waits for his turn."""

    owner: Hashable
    started: bool = True


class FairQueue(Generic[K]):
    """Keys that wait for their turn, each since a moment."""

    def __init__(self, lane_of: Callable[[K], QueueLane]) -> None:
        self._lane_of = lane_of
        self._started: _Lanes[K] = _Lanes()
        self._new: _Lanes[K] = _Lanes()
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self._started) + len(self._new)

    def add(self, key: K, since: float) -> None:
        """Wait for a turn; who waits already keeps its place."""
        owner, started = self._lane_of(key)
        if not self._started.holds(owner, key) and not self._new.holds(owner, key):
            (self._started if started else self._new).add(owner, key, since)

    def pop(self, barred: Callable[[K], bool] | None = None) -> K | None:
        """The key whose turn it is; None if there is none, or if all are `barred`."""
        overdue = bool(self._new) and self._in_a_row == _STARTED_IN_A_ROW
        if not overdue and (key := self._started.pop(barred)) is not None:
            self._in_a_row = min(self._in_a_row + 1, _STARTED_IN_A_ROW)
            return key
        self._in_a_row = 0
        key = self._new.pop(barred)
        return self._started.pop(barred) if key is None else key

    def remove(self, key: K) -> None:
        """Do not wait any more."""
        owner = self._lane_of(key).owner
        self._started.drop(owner, key)
        self._new.drop(owner, key)

    def ready_times(self) -> Iterator[float]:
        """Since when they wait."""
        return chain(self._started.ready_times(), self._new.ready_times())


class _Lanes(Generic[K]):
    """A lane for each owner, in the order of their turns."""

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

    def pop(self, barred: Callable[[K], bool] | None) -> K | None:
        for owner, lane in self._lanes.items():
            key = next(iter(lane))
            if barred is not None and barred(key):
                continue
            del self._lanes[owner], lane[key]
            self._size -= 1
            if lane:
                self._lanes[owner] = lane  # behind the others
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
