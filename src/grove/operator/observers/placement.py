"""The state of the placement key: which gangs wait for an assignment of nodes, and which have one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.keys import ReplicaKey
from grove.plan.placement import Assigner, Assignment, GangName


class PlacementSnapshot(Struct, frozen=True):
    """The gangs that wait for an assignment, in the order of their requests, and the given assignments."""

    assigner: Assigner
    pending: tuple[GangName, ...]
    assigned: Mapping[GangName, Assignment]

    def assignments(self) -> dict[GangName, Assignment]:
        """New assignments for those gangs that there is room for."""
        given, new = dict(self.assigned), dict[GangName, Assignment]()
        for gang in self.pending:
            if (assignment := self.assigner.assign(gang, given)) is not None:
                given[gang] = new[gang] = assignment
        return new


class PlacementState:
    """The assignments of the whole cluster; only the placement key changes them."""

    def __init__(self, assigner: Assigner) -> None:
        self._assigner = assigner
        self._pending: dict[GangName, ReplicaKey] = {}
        self._assigned: dict[GangName, Assignment] = {}
        self._gangs: dict[ReplicaKey, set[GangName]] = {}

    def of(self, key: ReplicaKey, workload: PodCliqueSet) -> Mapping[str, Assignment] | None:
        """The assignments of a replica's gangs; None if the assigner does not apply to the set."""
        if not self._assigner.applies_to(workload):
            return None
        known = self._gangs.get(key, ())
        return {gang.name: self._assigned[gang] for gang in known if gang in self._assigned}

    def request(self, key: ReplicaKey, gangs: Iterable[str]) -> bool:
        """Request assignments for gangs. Returns whether any of the requests is new."""
        new = {GangName(key.namespace, name) for name in gangs} - self._pending.keys()
        for gang in new:
            self._pending[gang] = key
            self._gangs.setdefault(key, set()).add(gang)
        return bool(new)

    def snapshot(self) -> PlacementSnapshot | None:
        """The gangs that wait; None if there are none."""
        if not self._pending:
            return None
        return PlacementSnapshot(self._assigner, tuple(self._pending), dict(self._assigned))

    def record(self, assignments: Mapping[GangName, Assignment]) -> set[ReplicaKey]:
        """Store new assignments. Returns the replicas that they are for."""
        placed: set[ReplicaKey] = set()
        for gang, assignment in assignments.items():
            if (key := self._pending.pop(gang, None)) is not None:
                self._assigned[gang] = assignment
                placed.add(key)
        return placed

    def forget(self, key: ReplicaKey) -> None:
        """Drop the requests and assignments of a replica that no longer exists."""
        for gang in self._gangs.pop(key, ()):
            self._pending.pop(gang, None)
            self._assigned.pop(gang, None)
