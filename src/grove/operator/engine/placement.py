"""What the placement key keeps: which gangs ask for a place, and which were given one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.keys import ReplicaKey
from grove.plan.placement import Assigner, Assignment, GangName


class PlacementState:
    """The reservations of the whole cluster, written by one key only."""

    def __init__(self, assigner: Assigner) -> None:
        self._assigner = assigner
        self._pending: dict[GangName, ReplicaKey] = {}
        self._assigned: dict[GangName, Assignment] = {}
        self._gangs: dict[ReplicaKey, set[GangName]] = {}

    def of(self, key: ReplicaKey, workload: PodCliqueSet) -> Mapping[str, Assignment] | None:
        """The places of a replica's gangs; None if nobody places them."""
        if not self._assigner.applies_to(workload):
            return None
        known = self._gangs.get(key, ())
        return {gang.name: self._assigned[gang] for gang in known if gang in self._assigned}

    def request(self, key: ReplicaKey, gangs: Iterable[str]) -> bool:
        """Ask for places. Whether there is anything new to decide."""
        new = {GangName(key.namespace, name) for name in gangs} - self._pending.keys()
        for gang in new:
            self._pending[gang] = key
            self._gangs.setdefault(key, set()).add(gang)
        return bool(new)

    def assign(self) -> set[ReplicaKey]:
        """Give a place to whoever can have one, first come first served. Returns whose gangs were placed."""
        placed: set[ReplicaKey] = set()
        for gang, key in list(self._pending.items()):
            assignment = self._assigner.assign(gang, self._assigned)
            if assignment is not None:
                self._assigned[gang] = assignment
                del self._pending[gang]
                placed.add(key)
        return placed

    def forget(self, key: ReplicaKey) -> None:
        """A replica that is no more needs no places."""
        for gang in self._gangs.pop(key, ()):
            self._pending.pop(gang, None)
            self._assigned.pop(gang, None)
