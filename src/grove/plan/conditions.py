"""Builds and merges conditions: `lastTransitionTime` changes only when the status of a condition does."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from grove import timing
from grove.api.conditions import ConditionType, UpdateReason
from grove.api.meta import Condition
from grove.plan.timestamps import rfc3339

Conditions = tuple[Condition, ...]


def new_condition(type_: str, holds: bool | None, reason: str, message: str) -> Condition:
    """A condition without `lastTransitionTime`. None means Unknown. A long message is cut, because the API
    server would refuse the whole status."""
    status = "Unknown" if holds is None else str(holds)
    if len(message) > timing.CONDITION_MESSAGE_LENGTH:
        message = f"{message[: timing.CONDITION_MESSAGE_LENGTH - 1]}…"
    return Condition(type=type_, status=status, reason=reason, message=message)


def find(conditions: Conditions, type_: str) -> Condition | None:
    """The condition of a type."""
    return next((known for known in conditions if known.type == type_), None)


def is_true(conditions: Conditions, type_: str) -> bool:
    known = find(conditions, type_)
    return known is not None and known.status == "True"


def without(conditions: Conditions, type_: str) -> Conditions:
    """The conditions without one type."""
    return tuple(known for known in conditions if known.type != type_)


def merge_conditions(known: Conditions, new_conditions: Iterable[Condition], now: float) -> Conditions:
    """The known conditions, updated in place; new types are appended."""
    merged = {condition.type: condition for condition in known}
    for new in new_conditions:
        old = merged.get(new.type)
        since = rfc3339(now) if old is None or old.status != new.status else old.last_transition_time
        merged[new.type] = replace(new, last_transition_time=since)
    return tuple(merged.values())


def update_in_progress(updating: bool, overdue: str = "") -> Condition:
    """The condition `UpdateInProgress`; Unknown while the update is `overdue`, which is then its message."""
    if not updating:
        status, reason, message = "False", UpdateReason.NO_ACTIVE_UPDATE, "No update is in progress"
    elif overdue:
        status, reason, message = "Unknown", UpdateReason.PROGRESS_DEADLINE_EXCEEDED, overdue
    else:
        status, reason, message = "True", UpdateReason.PROGRESSING, "Pods are being replaced"
    return Condition(ConditionType.UPDATE_IN_PROGRESS, status, reason=reason, message=message)
