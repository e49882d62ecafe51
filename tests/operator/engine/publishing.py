"""A status publisher with the pending statuses of its keys, and statuses to publish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from grove.api.conditions import ConditionType
from grove.api.intents import Target
from grove.api.meta import Condition
from grove.api.types.podclique import PodCliqueStatus
from grove.operator.engine.status_publisher import PendingStatuses, StatusPublisher
from grove.plan.model import StatusUpdate

TARGET = Target("grove.io/v1alpha1", "PodClique", "wl-0-a", "ns")


def status(
    ready: int = 0, *, breached: bool | None = None, at: str = "2026-01-01T00:00:00Z"
) -> PodCliqueStatus:
    if breached is None:
        return PodCliqueStatus(ready_replicas=ready)
    condition = Condition(
        type=ConditionType.MIN_AVAILABLE_BREACHED, status=str(breached), last_transition_time=at
    )
    return PodCliqueStatus(ready_replicas=ready, conditions=(condition,))


def status_update(current: PodCliqueStatus, desired: PodCliqueStatus) -> StatusUpdate:
    return StatusUpdate(TARGET, current, desired)


class Publisher:
    """A publisher with the pending statuses of all keys."""

    def __init__(self) -> None:
        self._publisher: StatusPublisher[Hashable] = StatusPublisher()
        self._pending: defaultdict[Hashable, PendingStatuses] = defaultdict(PendingStatuses)
        self.release, self.end_pass = self._publisher.release, self._publisher.end_pass
        self.record_change = self._publisher.record_change

    def due_updates(self, key: Hashable, updates: tuple[StatusUpdate, ...], now: float, *, busy: bool):
        return self._publisher.due_updates(key, self._pending[key], updates, now, busy=busy)

    def defer(self, key: Hashable) -> None:
        self._publisher.defer(key, self._pending[key])

    def forget(self, key: Hashable) -> None:
        self._publisher.forget(key, self._pending.pop(key))


def due_after(publisher: Publisher, found: StatusUpdate, now: float, *, busy: bool = False):
    due, later = publisher.due_updates("key", (found,), now, busy=busy)
    return bool(due), later


def starting_group(ready: int = 0) -> StatusUpdate:
    return status_update(status(), PodCliqueStatus(replicas=99, ready_replicas=ready))
