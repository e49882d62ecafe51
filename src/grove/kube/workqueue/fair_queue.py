"""Decides which ready key of the work queue is next: tenants and owners take turns, and started workloads go
first.

With first come, first served, a small workload would wait for all keys of a large one, and a workload that
has been started would wait until all others have been started as well. So each owner of keys has a lane of
its own. Tenants take turns, and within a tenant its lanes; within a lane it is first come, first served. Keys
of started workloads are preferred to new ones, though only so many times in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Generic, NamedTuple, TypeVar

from grove import timing
from grove.kube.workqueue.round_robin import RoundRobinQueue

K = TypeVar("K", bound=Hashable)


class QueueLane(NamedTuple):
    """The lane that a key waits in: its owner, and whether the workload has been started."""

    owner: Hashable
    started: bool = True


class FairQueue(Generic[K]):
    """The ready keys, each with the time since when it is ready."""

    def __init__(self, lane_of: Callable[[K], QueueLane], tenant_of: Callable[[K], Hashable]) -> None:
        self._lane_of, self._tenant_of = lane_of, tenant_of
        self._since: dict[K, float] = {}
        self._started: RoundRobinQueue[Hashable, K] = RoundRobinQueue()
        self._new: RoundRobinQueue[Hashable, K] = RoundRobinQueue()
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self._since)

    def add(self, key: K, since: float) -> None:
        """Add a ready key; one that waits already keeps its place."""
        if key not in self._since:
            self._since[key] = since
            owner, started = self._lane_of(key)
            (self._started if started else self._new).add(key, self._tenant_of(key), owner)

    def pop(self, allowed: Callable[[Hashable], bool] | None = None) -> K | None:
        """Remove and return the next key of a tenant that is `allowed` one; None if there is none."""
        key = self._pop(allowed)
        if key is not None:
            del self._since[key]
        return key

    def remove(self, key: K) -> None:
        """Remove a key."""
        if self._since.pop(key, None) is not None:
            tenant, owner = self._tenant_of(key), self._lane_of(key).owner
            for waiting in (self._started, self._new):  # it may have been started since it was added
                waiting.remove(key, tenant, owner)

    def ready_times(self) -> Collection[float]:
        """Since when each key is ready."""
        return self._since.values()

    def _pop(self, allowed: Callable[[Hashable], bool] | None) -> K | None:
        overdue = bool(self._new) and self._in_a_row == timing.STARTED_KEYS_IN_A_ROW
        if not overdue and (key := self._started.pop(allowed)) is not None:
            self._in_a_row = min(self._in_a_row + 1, timing.STARTED_KEYS_IN_A_ROW)
            return key
        self._in_a_row = 0
        key = self._new.pop(allowed)
        return self._started.pop(allowed) if key is None and overdue else key
