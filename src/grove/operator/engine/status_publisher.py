"""Decides when a status is written: after a short delay, so that successive changes are one write.

| status | written |
|---|---|
| differs from the desired one | 0.25 s after the last change of that, at most 2 s after the first |
| of pods that are starting | later, the more statuses of all keys are pending: each will change again soon |
| while other writes take most slots | when slots become free, after 20 s at most, with what is true then |
| a condition gets worse, or a rollout begins or ends | at once |
| only the scheduler's message about a waiting gang differs | with back-off (see `message_backoff`) |
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.api.conditions import ConditionType
from grove.api.intents import Intent, Status
from grove.api.types.podclique import PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroupStatus
from grove.api.types.podgang import GangPhase, PodGang, PodGangStatus
from grove.operator.engine.message_backoff import MessageBackoff
from grove.plan.conditions import is_true
from grove.plan.gang.status import SCHEDULER_MESSAGE_SEPARATOR
from grove.plan.model import StatusUpdate
from grove.plan.writes.diff import status_patch

K = TypeVar("K", bound=Hashable)


class PendingStatuses(Struct):
    """The statuses of one key that are not written yet."""

    desired: tuple[object, ...] = ()
    since: float = 0.0
    changed: float = 0.0
    counted: int = 0
    """How many of them count as pending among those of all keys."""
    message: MessageBackoff | None = None
    """The back-off of the scheduler's message."""


class StatusPublisher(Generic[K]):
    """Decides for all keys, whose pending statuses the caller keeps."""

    def __init__(self) -> None:
        self._pending_statuses = 0  # statuses that are not written yet, of all keys
        self._waiting: dict[K, None] = {}  # due, and waiting for free slots, in order of arrival
        self._released: set[K] = set()  # got a free slot, and are enqueued

    def due_updates(
        self,
        key: K,
        pending: PendingStatuses,
        status_updates: Sequence[StatusUpdate],
        now: float,
        *,
        busy: bool,
    ) -> tuple[list[StatusUpdate], float | None]:
        """The status updates to write now, or the time to requeue at; none and None if no status differs."""
        changed = [
            status_update
            for status_update in status_updates
            if status_update.current != status_update.desired
        ]
        self._waiting.pop(key, None)
        self._released.discard(key)
        if not changed:
            self._clear(pending)
            return [], None
        if all(map(_only_message_changed, changed)):
            self._clear(pending)
            again = _message_due(pending, now, busy=busy)
            return ([], again) if again is not None else (changed, None)
        self._record(pending, tuple(map(_without_timestamps, changed)), now)
        if not any(
            _is_regression(status_update) or _update_started_or_ended(status_update)
            for status_update in changed
        ):
            if now < (due := self._due(pending, in_progress=_in_progress(changed))):
                return [], due
            if busy and now < pending.since + timing.STATUS_MAX_DELAY:
                self._waiting[key] = None
                return [], pending.since + timing.STATUS_MAX_DELAY
        self._clear(pending)
        return changed, None

    def release(self, free_slots: int) -> list[K]:
        """The keys that have waited longest, as many as there are free slots, less those released already."""
        released = list(islice(self._waiting, max(0, free_slots - len(self._released))))
        for key in released:
            del self._waiting[key]
        self._released.update(released)
        return released

    def _record(self, pending: PendingStatuses, desired: tuple[object, ...], now: float) -> None:
        if not pending.desired:
            pending.since = now
        if pending.desired != desired:
            pending.desired, pending.changed = desired, now
        self._count(pending, len(desired))

    def _count(self, pending: PendingStatuses, statuses: int) -> None:
        self._pending_statuses += statuses - pending.counted
        pending.counted = statuses

    def _clear(self, pending: PendingStatuses) -> None:
        pending.desired = ()
        self._count(pending, 0)

    def defer(self, key: K, pending: PendingStatuses | None) -> None:
        """The key waits for a slow write: until its next pass, its statuses do not delay those of others."""
        self._released.discard(key)
        if pending is not None:
            self._count(pending, 0)

    def _due(self, pending: PendingStatuses, *, in_progress: bool) -> float:
        pending_statuses = self._pending_statuses if in_progress else 0
        quiet = min(
            max(timing.STATUS_QUIET_PERIOD, pending_statuses / timing.STATUSES_PER_SECOND),
            timing.STATUS_MAX_QUIET_PERIOD,
        )
        return min(
            pending.changed + quiet,
            pending.since + timing.STATUS_QUIET_PERIODS * quiet,
            pending.since + timing.STATUS_MAX_DELAY,
        )

    def end_pass(self, key: K) -> None:
        """The pass over the key is over, whether it came to its statuses or not: its free slot is used up."""
        self._released.discard(key)

    def forget(self, key: K, pending: PendingStatuses | None) -> None:
        """The key does not exist any more."""
        if pending is not None:
            self._clear(pending)
        self._waiting.pop(key, None)
        self._released.discard(key)


def _message_due(pending: PendingStatuses, now: float, *, busy: bool) -> float | None:
    """When a changed scheduler message is due; None: now."""
    if pending.message is None:
        pending.message = MessageBackoff()
    if now < (due := pending.message.due_at(now)):
        return due
    if busy:
        return now + timing.STATUS_MAX_QUIET_PERIOD
    pending.message.record(now)
    return None


def status_writes(status_updates: list[StatusUpdate]) -> list[Intent]:
    """The intents that write these statuses, each on the resourceVersion that it was computed from."""
    return [
        Status(status_update.target, {**_version(status_update), "status": patch})
        for status_update in status_updates
        if (patch := status_patch(status_update.current, status_update.desired))
    ]


def _version(status_update: StatusUpdate) -> dict[str, Any]:
    return (
        {"metadata": {"resourceVersion": status_update.resource_version}}
        if status_update.resource_version
        else {}
    )


def _without_timestamps(status_update: StatusUpdate) -> object:
    """The content of a status update that counts as a change: without timestamps."""
    conditions = getattr(status_update.desired, "conditions", ())
    return (
        status_update.target,
        tuple((each.type, each.status, each.reason, each.message) for each in conditions),
        getattr(status_update.desired, "ready_replicas", None),
        getattr(status_update.desired, "replicas", None),
        getattr(status_update.desired, "available_replicas", None),
    )


def _in_progress(changed: list[StatusUpdate]) -> bool:
    """Whether the statuses will change again soon: pods are not ready yet, and there is no error."""
    return any(map(_starting, changed)) and not any(
        getattr(status_update.desired, "last_errors", ()) for status_update in changed
    )


def _starting(status_update: StatusUpdate) -> bool:
    status = status_update.desired
    if isinstance(status, PodCliqueStatus):
        return status.ready_replicas < status.replicas
    if isinstance(status, PodCliqueScalingGroupStatus):
        return status.available_replicas < status.replicas
    return isinstance(status, PodGangStatus) and status.phase in (GangPhase.PENDING, GangPhase.STARTING)


def _is_regression(status_update: StatusUpdate) -> bool:
    """Whether `minAvailable` is newly breached, or a clique is no longer scheduled."""
    before, after = status_update.current.conditions, status_update.desired.conditions
    breach, scheduled = ConditionType.MIN_AVAILABLE_BREACHED, ConditionType.CLIQUE_SCHEDULED
    known = any(condition.type == breach for condition in before)
    return (known and is_true(after, breach) and not is_true(before, breach)) or (
        is_true(before, scheduled) and not is_true(after, scheduled)
    )


def _only_message_changed(status_update: StatusUpdate) -> bool:
    """Whether nothing but the scheduler's message in the status of a gang differs."""
    return status_update.target.kind == PodGang.KIND.name and _without_scheduler_message(
        status_update.current
    ) == _without_scheduler_message(status_update.desired)


def _without_scheduler_message(status: PodGangStatus) -> PodGangStatus:
    conditions = (
        replace(condition, message=condition.message.partition(SCHEDULER_MESSAGE_SEPARATOR)[0])
        for condition in status.conditions
    )
    return replace(status, conditions=tuple(conditions))


def _update_started_or_ended(status_update: StatusUpdate) -> bool:
    """Whether a rollout has begun or ended."""
    return _update_times(status_update.current) != _update_times(status_update.desired)


def _update_times(status: object) -> object:
    progress = getattr(status, "update_progress", None)
    return progress and (progress.update_started_at, progress.update_ended_at)
