"""The events of a set whose topology conditions change.

A new set whose constraints can be kept has none, and neither has one without constraints.
"""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.conditions import ConditionType, EnforcementReason, TopologyLevelsReason
from grove.api.event_reasons import EventReason
from grove.api.meta import Condition
from grove.api.types.podcliqueset import PodCliqueSet, PodCliqueSetStatus
from grove.plan.conditions import find
from grove.plan.model import PlannedEvent
from grove.plan.writes.builders import reference


def topology_events(workload: PodCliqueSet, status: PodCliqueSetStatus) -> tuple[PlannedEvent, ...]:
    """The events of a set, emitted once this status is written."""
    changes = (
        (ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE, _levels_event),
        (ConditionType.CONSTRAINTS_ENFORCED, _enforcement_event),
    )
    found: list[PlannedEvent] = []
    for type_, event_of in changes:
        before, after = find(workload.status.conditions, type_), find(status.conditions, type_)
        if after is None or (before is not None and before.reason == after.reason):
            continue
        found += (
            PlannedEvent(reference(workload), reason, after.message, warning=warning)
            for reason, warning in event_of(before, after)
        )
    return tuple(found)


def _levels_event(before: Condition | None, after: Condition) -> Iterator[tuple[EventReason, bool]]:
    if after.status != "False":
        yield EventReason.TOPOLOGY_LEVELS_UNAVAILABLE, True
    elif after.reason == TopologyLevelsReason.INVERTED:
        yield EventReason.TOPOLOGY_LEVELS_INVERTED, True
    elif before is not None:
        yield EventReason.TOPOLOGY_LEVELS_AVAILABLE, False


def _enforcement_event(before: Condition | None, after: Condition) -> Iterator[tuple[EventReason, bool]]:
    """None for what the levels cause: they have events of their own."""
    levels = EnforcementReason.LEVELS_UNAVAILABLE
    if after.status == "False" and after.reason != levels:
        yield EventReason.CONSTRAINTS_NOT_ENFORCED, True
    elif after.status == "True" and before is not None and before.reason != levels:
        yield EventReason.CONSTRAINTS_ENFORCED, False
