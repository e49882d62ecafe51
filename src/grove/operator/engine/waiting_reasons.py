"""Separates changes of the condition `Waiting` from all others.

In a healthy start pods wait for many things, each for a moment. A reason alone is written only once it lasts,
and never costs a write that is not needed: if it comes or goes with another change, both are one write. What
is usual for a moment does not come with another change, which removes the reason that it replaces. While
gangs compete for nodes, their reasons alternate: then one that is usual for a moment replaces another as if
only the message differed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from grove.api.conditions import SCHEDULER_MESSAGE_SEPARATOR, ConditionType
from grove.api.types.podgang import PodGang
from grove.plan.conditions import Conditions, find, without
from grove.plan.model import StatusUpdate
from grove.reasons.codes import ALTERNATING, MOMENTARY

_TYPE = ConditionType.WAITING


class SplitUpdates(Struct, frozen=True):
    """Status updates, by what differs."""

    others: list[StatusUpdate]
    """More than what pods wait for."""
    reasons: list[StatusUpdate]
    """Only that: it is new or gone, or another one."""
    messages: list[StatusUpdate]
    """Only the message about it."""


def split_by_reason(changed: Sequence[StatusUpdate]) -> SplitUpdates:
    """The updates by what differs."""
    parts = SplitUpdates([], [], [])
    for update in changed:
        if not _only_waiting_changed(update):
            parts.others.append(update)
        elif differs_in_reason(update):
            parts.reasons.append(update)
        else:
            parts.messages.append(update)
    return parts


def differs_in_reason(update: StatusUpdate) -> bool:
    """Whether a reason is new or gone, or another one, unless both alternate."""
    stored, new = _codes(update)
    return stored != new and not _alternate(stored, new)


def has_momentary_reason(update: StatusUpdate) -> bool:
    """Whether pods wait for something else than the stored status says, and perhaps for a moment only."""
    stored, new = _codes(update)
    return stored != new and new in MOMENTARY and not _alternate(stored, new)


def without_momentary_reason(update: StatusUpdate) -> StatusUpdate:
    """The update without a reason, if it has a new one that may end at once: the stored one is obsolete."""
    if not has_momentary_reason(update):
        return update
    _, new = _codes(update)
    conditions = without(update.desired.conditions, _TYPE)
    events = tuple(event for event in update.events if event.reason != new)
    return replace(update, desired=replace(update.desired, conditions=conditions), events=events)


def _alternate(stored: str, new: str) -> bool:
    """Whether a reason that is usual for a moment replaces one that is likely to come back."""
    return stored in ALTERNATING and new in ALTERNATING & MOMENTARY


def _codes(update: StatusUpdate) -> tuple[str, str]:
    """The stored code and the new one; empty without a reason."""
    return _code(update.current.conditions), _code(update.desired.conditions)


def _code(conditions: Conditions) -> str:
    found = find(conditions, _TYPE)
    return found.reason if found is not None else ""


def _only_waiting_changed(update: StatusUpdate) -> bool:
    is_gang = update.target.kind == PodGang.KIND.name
    return bool(_comparable(update.current, is_gang) == _comparable(update.desired, is_gang))


def _comparable(status: Any, is_gang: bool) -> Any:
    """A status without what pods wait for, and without the scheduler's message."""
    conditions: Conditions = without(status.conditions, _TYPE)
    if is_gang:
        conditions = tuple(
            replace(each, message=each.message.partition(SCHEDULER_MESSAGE_SEPARATOR)[0])
            for each in conditions
        )
    return replace(status, conditions=conditions)
