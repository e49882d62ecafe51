"""When a status is published: a moment after the news, so that what comes together is told together.

A difference between how a status reads and how it should read is published a quarter of a second after it
last changed, and at the latest two seconds after it first arose. Who is still on the way is listened to for
longer, the more there is to tell by everybody: where a hundred replicas start at once, each has more to say a
moment later. While deeds take most of the slots, observations wait for room, at most for as long as
a storm may last, and come with what is true then. Bad news does not wait, nor does the news that an update
has begun or ended. Where a scheduler has only put it differently why a gang waits, it is repeated with
patience (see `patience`).
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.api.intents import Intent, Status
from grove.api.types.podclique import PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroupStatus
from grove.api.types.podgang import GangPhase, PodGang, PodGangStatus
from grove.operator.engine.message_backoff import MessageBackoff
from grove.plan.gang.status import SCHEDULER_MESSAGE_SEPARATOR
from grove.plan.model import StatusUpdate
from grove.plan.status.conditions import is_true
from grove.plan.writes.diff import status_patch

K = TypeVar("K", bound=Hashable)

_QUIET_PERIOD = 0.25
_MAX_QUIET_PERIOD = 10.0
_STATUSES_PER_SECOND = (
    100  # statuses a second: in a crowd, listening takes as long as telling all would at this pace
)
_MAX_QUIET_PERIODS = 8  # times the quiet, for what does not become quiet
_MAX_DELAY = 20.0


class _Pending(Struct):
    desired: tuple[object, ...]
    since: float
    changed: float
    counted: int = 0  # statuses that are part of the crowd


class StatusPublisher(Generic[K]):
    """Knows, for each key, what is yet to be told and since when."""

    def __init__(self) -> None:
        self._pending: dict[K, _Pending] = {}
        self._pending_statuses = 0  # statuses that are yet to be told, of all keys
        self._waiting: dict[K, None] = {}  # due, and waiting for room, in order of arrival
        self._released: set[K] = set()  # there was room for them, and they are on their way
        self._backoff: MessageBackoff[K] = MessageBackoff()

    def due_updates(
        self, key: K, status_updates: tuple[StatusUpdate, ...], now: float, *, busy: bool
    ) -> tuple[list[StatusUpdate], float | None]:
        """The drafts to publish now, or the moment to come back at; nothing and None if all is told."""
        changed = [
            status_update
            for status_update in status_updates
            if status_update.current != status_update.desired
        ]
        self._waiting.pop(key, None)
        self._released.discard(key)
        if not changed:
            self._clear_pending(key)
            return [], None
        if all(map(_only_message_changed, changed)):
            self._clear_pending(key)
            again = self._message_due(key, now, busy=busy)
            return ([], again) if again is not None else (changed, None)
        pending = self._record(key, tuple(map(_without_timestamps, changed)), now)
        if not any(
            _is_regression(status_update) or _update_started_or_ended(status_update)
            for status_update in changed
        ):
            if now < (due := self._due(pending, in_progress=_in_progress(changed))):
                return [], due
            if busy and now < pending.since + _MAX_DELAY:
                self._waiting[key] = None
                return [], pending.since + _MAX_DELAY
        self._clear_pending(key)
        return changed, None

    def _message_due(self, key: K, now: float, *, busy: bool) -> float | None:
        """Until when talk is not repeated yet; None: it is now."""
        if now < (due := self._backoff.due_at(key, now)):
            return due
        if busy:
            return now + _MAX_QUIET_PERIOD
        self._backoff.record(key, now)
        return None

    def release(self, room: int) -> list[K]:
        """The keys that have waited longest for room, as many as it is for, with those that come already."""
        released = list(islice(self._waiting, max(0, room - len(self._released))))
        for key in released:
            del self._waiting[key]
        self._released.update(released)
        return released

    def _record(self, key: K, desired: tuple[object, ...], now: float) -> _Pending:
        pending = self._pending.get(key)
        if pending is None:
            pending = self._pending[key] = _Pending(desired, now, now)
        elif pending.desired != desired:
            pending.desired, pending.changed = desired, now
        self._count(pending, len(desired))
        return pending

    def _count(self, pending: _Pending, statuses: int) -> None:
        self._pending_statuses += statuses - pending.counted
        pending.counted = statuses

    def _clear_pending(self, key: K) -> None:
        if pending := self._pending.pop(key, None):
            self._count(pending, 0)

    def defer(self, key: K) -> None:
        """The key waits for a slow write: until it is considered again, others do not wait for its news."""
        if pending := self._pending.get(key):
            self._count(pending, 0)

    def _due(self, pending: _Pending, *, in_progress: bool) -> float:
        pending_statuses = self._pending_statuses if in_progress else 0
        quiet = min(max(_QUIET_PERIOD, pending_statuses / _STATUSES_PER_SECOND), _MAX_QUIET_PERIOD)
        return min(
            pending.changed + quiet, pending.since + _MAX_QUIET_PERIODS * quiet, pending.since + _MAX_DELAY
        )

    def forget(self, key: K) -> None:
        self._clear_pending(key)
        self._waiting.pop(key, None)
        self._released.discard(key)
        self._backoff.forget(key)


def status_writes(status_updates: list[StatusUpdate]) -> list[Intent]:
    """The writes that publish these drafts, each on the version that it was made from."""
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
    """What a draft says apart from when it was said."""
    conditions = getattr(status_update.desired, "conditions", ())
    return (
        status_update.target,
        tuple((fact.type, fact.status, fact.reason, fact.message) for fact in conditions),
        getattr(status_update.desired, "ready_replicas", None),
        getattr(status_update.desired, "replicas", None),
        getattr(status_update.desired, "available_replicas", None),
    )


def _in_progress(changed: list[StatusUpdate]) -> bool:
    """There is more to come: pods that are not ready yet, and nothing that could not be done."""
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
    """Something that was well is not any more."""
    before, after = status_update.current.conditions, status_update.desired.conditions
    breach, scheduled = ConditionType.MIN_AVAILABLE_BREACHED, ConditionType.CLIQUE_SCHEDULED
    known = any(fact.type == breach for fact in before)
    return (known and is_true(after, breach) and not is_true(before, breach)) or (
        is_true(before, scheduled) and not is_true(after, scheduled)
    )


def _only_message_changed(status_update: StatusUpdate) -> bool:
    """A gang is where it was, and its scheduler has put it differently."""
    return status_update.target.kind == PodGang.KIND.name and _without_scheduler_message(
        status_update.current
    ) == _without_scheduler_message(status_update.desired)


def _without_scheduler_message(status: PodGangStatus) -> PodGangStatus:
    facts = (
        replace(fact, message=fact.message.partition(SCHEDULER_MESSAGE_SEPARATOR)[0])
        for fact in status.conditions
    )
    return replace(status, conditions=tuple(facts))


def _update_started_or_ended(status_update: StatusUpdate) -> bool:
    """An update has begun or ended."""
    return _update_times(status_update.current) != _update_times(status_update.desired)


def _update_times(status: object) -> object:
    progress = getattr(status, "update_progress", None)
    return progress and (progress.update_started_at, progress.update_ended_at)
