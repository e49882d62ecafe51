"""Decides when a status is written: after a short delay, so that successive changes are one write.

| status | written |
|---|---|
| differs from the desired one | 0.25 s after the last change of that, at most 2 s after the first |
| of pods that are starting | later, the more statuses of all keys are pending: each will change again soon |
| while other writes take most slots | when slots become free, after 20 s at most, with what is true then |
| of a replica with nothing but statuses left to write | the same, and it is not even planned before |
| a condition gets worse, or an update begins or ends | at once, and all others of the key with it |
| the same while an update of the key replaces pods | at once, without the others, which change again soon |
| while an update replaces pods, also if they make a condition worse | after 1 s instead of 0.25 s |
| only a reason for pods to wait is new or gone | 2 s later |
| only the message about what pods wait for differs, or reasons alternate | with back-off (message_backoff) |
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from grove import timing
from grove.api.conditions import ConditionType
from grove.api.intents import Intent, Status
from grove.api.types.podclique import PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroupStatus
from grove.api.types.podgang import GangPhase, PodGangStatus
from grove.operator.engine.message_backoff import MessageBackoff
from grove.operator.engine.waiting_reasons import (
    differs_in_reason,
    has_momentary_reason,
    split_by_reason,
    without_momentary_reason,
)
from grove.plan.conditions import is_true
from grove.plan.model import StatusUpdate
from grove.plan.writes.diff import status_patch

K = TypeVar("K", bound=Hashable)


class _Waited(NamedTuple):
    """Since when a key waits for a slot before it is reconciled, and when it last changed."""

    since: float = float("inf")
    changed: float = float("inf")


_KNOWN = _Waited()  # of a key that has been reconciled: its pending statuses have the times


class PendingStatuses(Struct):
    """The statuses of one key that are not written yet."""

    desired: tuple[object, ...] = ()
    since: float = 0.0
    changed: float = 0.0
    counted: int = 0
    """How many of them count as pending among those of all keys."""
    message: MessageBackoff | None = None
    """The back-off of messages about what pods wait for."""
    reason_since: float | None = None
    """When a stored reason for pods to wait began to differ."""


class StatusPublisher(Generic[K]):
    """Decides for all keys, whose pending statuses the caller keeps."""

    def __init__(self) -> None:
        self._pending_statuses = 0  # statuses that are not written yet, of all keys
        self._waiting: dict[K, _Waited] = {}  # for free slots, in order of their last change
        self._released: dict[K, _Waited] = {}  # got a free slot, and are enqueued

    def due_updates(
        self,
        key: K,
        pending: PendingStatuses,
        status_updates: Sequence[StatusUpdate],
        now: float,
        *,
        busy: bool,
    ) -> tuple[list[StatusUpdate], float | None]:
        """The status updates to write now, and the time to requeue at for the others; none and None if no
        status differs."""
        changed = [
            status_update
            for status_update in status_updates
            if status_update.current != status_update.desired
        ]
        waited = self._end_waiting(key, now)
        if not changed:
            self._clear(pending)
            pending.reason_since = None
            return [], None
        differing = list(filter(differs_in_reason, changed))
        parts, times = split_by_reason(changed), list[float]()
        others, reasons = parts.others, parts.reasons
        if (reasons_due := self._reasons_due(key, pending, differing, now, busy=busy)) is not None:
            if reasons or any(map(has_momentary_reason, others)):
                times.append(reasons_due)
            others, reasons = list(map(without_momentary_reason, others)), []
        due = [*self._others_due(key, pending, others, times, now, waited, busy=busy), *reasons]
        if parts.messages:
            if (again := _message_due(pending, now, busy=busy)) is not None:
                times.append(again)
            else:
                due += parts.messages
        if set(map(id, differing)) <= set(map(id, due)):  # others keep their time until they are written
            pending.reason_since = None
        return due, min(times, default=None)

    def _others_due(
        self,
        key: K,
        pending: PendingStatuses,
        changed: list[StatusUpdate],
        times: list[float],
        now: float,
        waited: _Waited,
        *,
        busy: bool,
    ) -> list[StatusUpdate]:
        """Those of the updates that are due: the urgent ones, and all or none of the others. If none, it is
        added to `times` when they are."""
        urgent, others = list(filter(_is_urgent, changed)), [each for each in changed if not _is_urgent(each)]
        if not others or (urgent and not any(each.updating for each in others)):
            self._clear(pending)
            return changed
        changed_at = now if _in_progress(others) else waited.changed
        self._record(pending, tuple(map(_without_timestamps, others)), waited.since, changed_at)
        if now < (due := self._due(pending, others)):
            times.append(due)
            return urgent
        if busy and now < pending.since + timing.STATUS_MAX_DELAY:
            self._waiting[key] = _KNOWN
            times.append(pending.since + timing.STATUS_MAX_DELAY)
            return urgent
        self._clear(pending)
        return changed

    def _reasons_due(
        self, key: K, pending: PendingStatuses, differing: list[StatusUpdate], now: float, *, busy: bool
    ) -> float | None:
        """When reasons that differ from the stored ones are due; None: now, or none differs."""
        if not differing:
            return None
        since = pending.reason_since = now if pending.reason_since is None else pending.reason_since
        if now < (due := since + max(timing.WAITING_DELAY, self._quiet_period())):
            return due
        if busy and now < since + timing.STATUS_MAX_DELAY:
            self._waiting[key] = _KNOWN
            return since + timing.STATUS_MAX_DELAY
        return None

    def release(self, free_slots: int) -> list[K]:
        """The keys that have waited longest, as many as there are free slots, less those released already."""
        released = list(islice(self._waiting, max(0, free_slots - len(self._released))))
        for key in released:
            self._released[key] = self._waiting.pop(key)
        return released

    def record_change(self, key: K, now: float, *, busy: bool) -> None:
        """Statuses of the key have changed, and nothing else. While other writes take the slots (`busy`), it
        waits for a free one before it is reconciled."""
        if key in self._released:
            self._released[key] = _Waited(min(self._released[key].since, now), now)
        since = self._waiting.pop(key, _KNOWN).since
        if busy:
            self._waiting[key] = _Waited(min(since, now), now)  # behind others: it is likely to change again

    def _end_waiting(self, key: K, now: float) -> _Waited:
        """The key is reconciled."""
        popped = (self._waiting.pop(key, None), self._released.pop(key, None))
        waited = [each for each in popped if each is not None] or [_KNOWN]
        since, changed = min(each.since for each in waited), max(each.changed for each in waited)
        return _Waited(min(since, now), min(changed, now))

    def _record(
        self, pending: PendingStatuses, desired: tuple[object, ...], since: float, changed_at: float
    ) -> None:
        if not pending.desired:
            pending.since = since
        if pending.desired != desired:
            pending.desired, pending.changed = desired, changed_at
        self._count(pending, len(desired))

    def _count(self, pending: PendingStatuses, statuses: int) -> None:
        self._pending_statuses += statuses - pending.counted
        pending.counted = statuses

    def _clear(self, pending: PendingStatuses) -> None:
        pending.desired = ()
        self._count(pending, 0)

    def defer(self, key: K, pending: PendingStatuses | None) -> None:
        """The key waits for a slow write: until its next pass, its statuses do not delay those of others."""
        self._released.pop(key, None)
        if pending is not None:
            self._count(pending, 0)

    def _due(self, pending: PendingStatuses, changed: list[StatusUpdate]) -> float:
        quiet = self._quiet_period() if _in_progress(changed) else timing.STATUS_QUIET_PERIOD
        updating = any(status_update.updating for status_update in changed)
        return min(
            pending.changed + max(quiet, timing.STATUS_UPDATE_QUIET_PERIOD if updating else 0.0),
            pending.since + timing.STATUS_QUIET_PERIODS * quiet,
            pending.since + timing.STATUS_MAX_DELAY,
        )

    def _quiet_period(self) -> float:
        """How long a status that will change again must be the same: the longer, the more are pending."""
        pending = self._pending_statuses + 2 * len(self._waiting)  # at least of a clique and of its gang
        return min(
            max(timing.STATUS_QUIET_PERIOD, pending / timing.STATUSES_PER_SECOND),
            timing.STATUS_MAX_QUIET_PERIOD,
        )

    def end_pass(self, key: K) -> None:
        """The pass over the key is over, whether it came to its statuses or not: its free slot is used up."""
        self._released.pop(key, None)

    def forget(self, key: K, pending: PendingStatuses | None) -> None:
        """The key does not exist any more."""
        if pending is not None:
            self._clear(pending)
        self._waiting.pop(key, None)
        self._released.pop(key, None)


def _message_due(pending: PendingStatuses, now: float, *, busy: bool) -> float | None:
    """When a changed message about what pods wait for is due; None: now."""
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
        tuple(
            (each.type, each.status, each.reason, each.message)
            for each in conditions
            if each.type != ConditionType.WAITING
        ),
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


def _is_urgent(status_update: StatusUpdate) -> bool:
    """Whether a status is written at once, also while all slots are taken."""
    return _is_regression(status_update) or _update_started_or_ended(status_update)


def _is_regression(status_update: StatusUpdate) -> bool:
    """Whether `minAvailable` is newly breached, or a clique is no longer scheduled, and not because an update
    replaces its pods."""
    if status_update.updating:
        return False
    before, after = status_update.current.conditions, status_update.desired.conditions
    breach, scheduled = ConditionType.MIN_AVAILABLE_BREACHED, ConditionType.CLIQUE_SCHEDULED
    known = any(condition.type == breach for condition in before)
    return (known and is_true(after, breach) and not is_true(before, breach)) or (
        is_true(before, scheduled) and not is_true(after, scheduled)
    )


def _update_started_or_ended(status_update: StatusUpdate) -> bool:
    """Whether a rollout has begun or ended."""
    return _update_times(status_update.current) != _update_times(status_update.desired)


def _update_times(status: object) -> object:
    progress = getattr(status, "update_progress", None)
    return progress and (progress.update_started_at, progress.update_ended_at)
