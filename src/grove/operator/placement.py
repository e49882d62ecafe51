"""What the placement key keeps: which gangs ask for a place, and which were given one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grove.api.sets import PodCliqueSet
from grove.operator.keys import ReplicaKey
from grove.plan.placement import Assigner, Assignment, GangName


class Placement:
    """The reservations of the whole cluster, written by one key only."""

    def __init__(self, assigner: Assigner) -> None:
        self._assigner = assigner
        self._asking: dict[GangName, ReplicaKey] = {}
        self._given: dict[GangName, Assignment] = {}
        self._gangs: dict[ReplicaKey, set[GangName]] = {}

    def of(self, key: ReplicaKey, workload: PodCliqueSet) -> Mapping[str, Assignment] | None:
        """The places of a replica's gangs; None if nobody places them."""
        if not self._assigner.places(workload):
            return None
        known = self._gangs.get(key, ())
        return {gang.name: self._given[gang] for gang in known if gang in self._given}

    def ask(self, key: ReplicaKey, gangs: Iterable[str]) -> bool:
        """Ask for places. Whether there is anything new to decide."""
        new = {GangName(key.namespace, name) for name in gangs} - self._asking.keys()
        for gang in new:
            self._asking[gang] = key
            self._gangs.setdefault(key, set()).add(gang)
        return bool(new)

    def decide(self) -> set[ReplicaKey]:
        """Give a place to whoever can have one, first come first served. Returns whose gangs were placed."""
        placed: set[ReplicaKey] = set()
        for gang, key in list(self._asking.items()):
            assignment = self._assigner.assign(gang, self._given)
            if assignment is not None:
                self._given[gang] = assignment
                del self._asking[gang]
                placed.add(key)
        return placed

    def forget(self, key: ReplicaKey) -> None:
        """A replica that is no more needs no places."""
        for gang in self._gangs.pop(key, ()):
            self._asking.pop(gang, None)
            self._given.pop(gang, None)
