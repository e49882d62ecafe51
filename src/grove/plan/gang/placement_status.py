"""Adds to the statuses of PodGangs where their gangs are, for those that the operator places.

The placement is written with the condition `Scheduled`, and from then on whenever it changes.
"""

from __future__ import annotations

from collections.abc import Collection

from grove.api.conditions import ConditionType
from grove.api.types.podgang import PodGang, PodGangStatus
from grove.plan.conditions import is_true
from grove.plan.placement.assignment import recorded
from grove.plan.placement.status import with_placement, without_placement
from grove.plan.snapshot import Snapshot


class PlacementStatus:
    """The placement of the gangs of one replica. `placed` are the gangs that the operator places."""

    def __init__(self, snapshot: Snapshot, placed: Collection[str]) -> None:
        self._placed, self._snapshot = placed, snapshot
        self._nodes = snapshot.nodes_of_pods

    def added(self, gang: PodGang, status: PodGangStatus) -> PodGangStatus:
        """The status with the placement of the gang. Until nodes are listed, it stays as it is."""
        if gang.metadata.name not in self._placed:
            return without_placement(status)
        if self._nodes is None or not (
            status.placement is not None or is_true(status.conditions, ConditionType.SCHEDULED)
        ):
            return status
        attempt = recorded(gang.metadata.annotations, len(self._snapshot.fallback_topologies)).attempt
        fallback = attempt - 1 if attempt else None
        return with_placement(status, gang, self._snapshot.topology_of(attempt), self._nodes, fallback)
