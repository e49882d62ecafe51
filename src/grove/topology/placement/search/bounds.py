"""Upper bounds of what fits into a domain, and lower bounds of what breaks, before anything is placed.

What a bound rules out needs no search. Placing pods only takes room away, so the bounds stay valid.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from grove.topology.placement.answers import Objective
from grove.topology.placement.index import ClusterIndex, View
from grove.topology.placement.model import Domain
from grove.topology.placement.search.joint import JointClass
from grove.topology.placement.search.state import Preferences, Work, best, objective
from grove.topology.placement.units import PlacementUnit, PodClass


class Bounds:
    def __init__(
        self, index: ClusterIndex, view: View, work: Work, joints: Sequence[JointClass] = ()
    ) -> None:
        self._index, self.view, self.work, self._joints = index, view, work, joints
        self._rooms: dict[tuple[int, Domain], int] = {}
        self._confined: dict[int, Counter[Domain]] = {}
        self._copies: dict[tuple[int, Domain], int] = {}
        self._shortfalls: dict[tuple[int, Domain], PlacementUnit | None] = {}
        self._demands: dict[int, list[tuple[PodClass | JointClass, int]]] = {}

    def room(self, pod_class: PodClass | JointClass, domain: Domain) -> int:
        """How many pods of a class fit into a domain: exact for pods of one class alone."""
        key = (pod_class.number, domain)
        found = self._rooms.get(key)
        if found is None:
            if pod_class.confined is not None:
                return self._confined_rooms(pod_class, pod_class.confined).get(domain, 0)
            found = self._rooms[key] = self._count(pod_class, domain)
        return found

    def may_fit(self, unit: PlacementUnit, domain: Domain) -> bool:
        """False if a unit certainly does not fit into a domain as a whole."""
        return self.shortfall(unit, domain) is None

    def shortfall(self, unit: PlacementUnit, domain: Domain) -> PlacementUnit | None:
        """The unit, or a unit in it, that has too little room in a domain; None if none is known."""
        key = (unit.kind, domain)
        if key not in self._shortfalls:
            self._shortfalls[key] = self._find_shortfall(unit, domain)
        return self._shortfalls[key]

    def demands(self, unit: PlacementUnit) -> list[tuple[PodClass | JointClass, int]]:
        """Each kind of room that a unit takes, and how much of it."""
        found = self._demands.get(unit.kind)
        if found is None:
            joint = [(each, need) for each in self._joints if (need := each.need(unit))]
            found = self._demands[unit.kind] = [*unit.totals.items(), *joint]
        return found

    def _find_shortfall(self, unit: PlacementUnit, domain: Domain) -> PlacementUnit | None:
        if not unit.totals:
            return None
        if unit.unknown_level or not self._has_amounts(unit, domain):
            return unit
        for part, count in unit.kinds_of_parts:
            if self.copies(part, domain) < count:
                return part
        short = any(self.room(each, domain) < need for each, need in self.demands(unit))
        return unit if short else None

    def copies(self, unit: PlacementUnit, domain: Domain) -> int:
        """At most so many units of one kind fit into a domain, each in one domain of its required level."""
        key = (unit.kind, domain)
        found = self._copies.get(key)
        if found is None:
            found = self._copies[key] = self._count_copies(unit, domain)
        return found

    def objective(self, unit: PlacementUnit, domain: Domain, preferences: Preferences) -> Objective:
        """No placement of a gang in a domain is better than this."""
        levels = range(len(self._index.levels))
        broken = [self._broken(unit, domain, level) for level in levels]
        return objective(self._unmet(domain, preferences), broken)

    def tightness(self, unit: PlacementUnit, domain: Domain) -> float:
        """How many times a domain has room for the hardest pods of a unit; the smallest leaves the least."""
        for pod_class, count in unit.totals.items():
            return self.room(pod_class, domain) / count
        return 0.0

    def first_guess(self, unit: PlacementUnit, domain: Domain) -> Objective | None:
        """The same from sums alone, without a look at nodes; None if a unit certainly does not fit."""
        if not self._has_amounts(unit, domain):
            return None
        levels = range(len(self._index.levels))
        broken = [self._broken(unit, domain, level) if level < len(domain) else 0 for level in levels]
        return objective(0.0, broken)

    def _count(self, pod_class: PodClass | JointClass, domain: Domain) -> int:
        """Each node is evaluated once for all domains that it lies in."""
        slots = sum(self.room(pod_class, child) for child in self._index.children.get(domain, ()))
        direct, free = self._index.direct.get(domain, ()), self.view.free
        self.work.spend(len(direct))
        known = pod_class.known_slots
        for i in direct:
            count = known.get(free[i])
            if count is None:
                count = pod_class.slots(free[i])
            if count and pod_class.eligible(i):
                slots += count
        return slots

    def _confined_rooms(self, pod_class: PodClass | JointClass, nodes: Sequence[int]) -> Counter[Domain]:
        """By domain, the room for a class that can only go to these nodes."""
        found = self._confined.get(pod_class.number)
        if found is None:
            found = self._confined[pod_class.number] = Counter()
            self.work.spend(len(nodes))
            for i in nodes:
                if (count := pod_class.slots(self.view.free[i])) and pod_class.eligible(i):
                    for domain in self._index.domains_of[i]:
                        found[domain] += count
        return found

    def _has_amounts(self, unit: PlacementUnit, domain: Domain) -> bool:
        if not unit.needs:
            return True
        sums = self.view.sums.get(domain)
        return sums is not None and all(sums[d] >= amount for d, amount in unit.needs.items())

    def _count_copies(self, unit: PlacementUnit, domain: Domain) -> int:
        if not unit.totals:
            return sys.maxsize  # nothing to place
        if unit.required is not None and unit.required >= len(domain):
            inner = self._index.subdomains(domain, unit.required)
            return sum(self.copies(unit, each) for each in inner if unit.allows(each))
        if not unit.satisfied_by(domain) or self.shortfall(unit, domain) is not None:
            return 0
        sums = self.view.sums.get(domain, [])
        by_amount = (sums[d] // amount for d, amount in unit.needs.items())
        by_class = (self.room(each, domain) // need for each, need in self.demands(unit))
        return min((*by_amount, *by_class))

    def _whole(self, domain: Domain) -> bool:
        return not self.view.busy.get(domain)

    def _broken(self, unit: PlacementUnit, domain: Domain, level: int) -> int:
        """At least so many whole domains of a level break."""
        accelerated = [(each, n) for each, n in unit.totals.items() if each.accelerated]
        if level < len(domain):
            return int(bool(accelerated) and bool(domain[level]) and self._whole(domain[: level + 1]))
        whole = [each for each in self._index.subdomains(domain, level) if self._whole(each)]
        if not whole:
            return 0
        least = 0
        for pod_class, count in accelerated:
            rooms = [self.room(pod_class, each) for each in whole]
            missing = count - (self.room(pod_class, domain) - sum(rooms))
            if missing > 0 and max(rooms):
                least = max(least, -(-missing // max(rooms)))
        return least

    def _unmet(self, domain: Domain, preferences: Preferences) -> float:
        if not preferences.units:
            return 0.0
        known: dict[int, float] = {}
        total = 0.0
        for unit in preferences.units:
            if unit.kind not in known:
                known[unit.kind] = self._unmet_share(unit, domain, preferences)
            total += known[unit.kind]
        return total / len(preferences.units)

    def _unmet_share(self, unit: PlacementUnit, domain: Domain, preferences: Preferences) -> float:
        """1 - the largest share of a unit that may lie in one preferred domain."""
        assert unit.preferred is not None
        bound = preferences.bound_counts(unit)
        if unit.preferred < len(domain):
            inside: Counter[Domain | None] = Counter({domain[: unit.preferred + 1]: unit.totals.total()})
            return 1 - best(inside + bound) / unit.pods if domain[unit.preferred] else 1.0
        most = best(bound)
        for each in {*self._index.subdomains(domain, unit.preferred), *filter(None, bound)}:
            fits = sum(min(n, self.room(one, each)) for one, n in unit.totals.items())
            most = max(most, fits + bound[each])
            if most == unit.pods:
                break
        return 1 - most / unit.pods
