"""Reports on the gangs that the operator places: where they are, in the statuses of PodGangs, and events.

The placement is written with the condition `Scheduled`, and from then on whenever it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.api.event_reasons import EventReason
from grove.api.meta import Condition
from grove.api.types.podgang import PodGang, PodGangStatus
from grove.plan.conditions import is_true, merge_conditions, without
from grove.plan.gang.placement import IN_PART
from grove.plan.model import PlannedEvent
from grove.plan.placement.assignment import recorded, released_in_part
from grove.plan.placement.status import with_placement, without_placement
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import reference


def placement_events(snapshot: Snapshot) -> Iterator[PlannedEvent]:
    """Gangs whose pods may start one by one."""
    for name in sorted(released_in_part(snapshot.placements)):
        if (found := snapshot.gangs.get(name)) is not None:
            note = f"{IN_PART[0].upper()}{IN_PART[1:]}"
            yield PlannedEvent(reference(found), EventReason.RELEASED_IN_PART, note)


class PlacementStatus:
    """The placement of the gangs of one replica. `placed` are the gangs that the operator places, with the
    condition that says what is not held for them."""

    def __init__(self, snapshot: Snapshot, placed: Mapping[str, Condition | None], now: float) -> None:
        self._placed, self._snapshot, self._now = placed, snapshot, now
        self._nodes = snapshot.nodes_of_pods

    def added(self, gang: PodGang, status: PodGangStatus) -> PodGangStatus:
        """The status with the placement of the gang. Until nodes are listed, it stays as it is."""
        status = self._with_protection(gang, status)
        if gang.metadata.name not in self._placed:
            return without_placement(status)
        if self._nodes is None or not (
            status.placement is not None or is_true(status.conditions, ConditionType.SCHEDULED)
        ):
            return status
        attempt = recorded(gang.metadata.annotations, len(self._snapshot.fallback_topologies)).attempt
        fallback = attempt - 1 if attempt else None
        return with_placement(status, gang, self._snapshot.topology_of(attempt), self._nodes, fallback)

    def _with_protection(self, gang: PodGang, status: PodGangStatus) -> PodGangStatus:
        """The status with the condition about what is not held, until the gang has its nodes."""
        condition = self._placed.get(gang.metadata.name)
        if condition is None or is_true(status.conditions, ConditionType.SCHEDULED):
            conditions = without(status.conditions, ConditionType.PLACEMENT_UNPROTECTED)
        else:
            conditions = merge_conditions(status.conditions, (condition,), self._now)
        return replace(status, conditions=conditions)
