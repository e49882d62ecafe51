"""Places a gang without backtracking over nodes: units from the outside in, large ones first, each into the
domain where it breaks least and leaves least; pods on the nodes where they leave least.

A failure here proves nothing; `search` decides then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grove import timing
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Domain
from grove.topology.placement.search.bounds import Bounds
from grove.topology.placement.search.joint import JointClass
from grove.topology.placement.search.state import Preferences, State, Step, Work
from grove.topology.placement.units import Load, PlacementUnit, PodClass

Areas = tuple[Domain, ...]
"""Domains to try one after another, from the preferred one to the one that must not be left."""


class Greedy:
    def __init__(self, index: ClusterIndex, state: State, bounds: Bounds, work: Work) -> None:
        self._index, self._state, self._bounds, self._work = index, state, bounds, work
        self._full: set[tuple[int, Domain]] = set()
        """Kinds of units and domains where one of that kind failed: it fails again until steps are undone."""
        self._failed_after: list[tuple[int, tuple[int, Domain]]] = []
        """The same, after how many steps they failed."""

    def place(self, unit: PlacementUnit, areas: Areas) -> bool:
        """Place a unit, or leave the state as it was."""
        if not unit.totals:
            return True
        if unit.required is None or unit.required < len(areas[-1]):
            return unit.satisfied_by(areas[-1]) and self._place_inside(unit, areas)
        for domain in self._candidates(unit, unit.required, areas):
            key = (unit.kind, domain)
            if key not in self._full and unit.allows(domain):
                if self._place_inside(unit, (domain,)):
                    return True
                self._full.add(key)
                self._failed_after.append((len(self._state.steps), key))
        return False

    def put(self, load: Load, count: int, areas: Areas) -> int:
        """Put up to so many pods of a load on nodes; returns for how many there is no room."""
        for area in areas:
            if not count:
                break
            count = self._put_in(load, count, self._narrowest(load, count, area))
        return count

    def _narrowest(self, load: Load, count: int, area: Domain) -> Domain:
        """The narrowest domain in an area that holds all: on the way down always the one that breaks least
        and has the least room. What is not scattered leaves whole domains behind."""
        while True:
            inner = [(self._room(load.pod_class, d), d) for d in self._index.children.get(area, ())]
            self._work.spend(len(inner))
            holding = [(self._state.whole(d), room, d) for room, d in inner if room >= count]
            if not holding:
                return area
            area = min(holding)[2]

    def _room(self, counted: PodClass | JointClass, domain: Domain) -> int:
        """How many pods fit into a domain now."""
        return self._bounds.room(counted, domain) - self._state.taken(counted, domain)

    def _may_fit(self, unit: PlacementUnit, domain: Domain) -> bool:
        """False if a unit certainly does not fit into what is left of a domain."""
        if not self._bounds.may_fit(unit, domain):
            return False
        return all(self._room(each, domain) >= need for each, need in self._bounds.demands(unit))

    def _tightness(self, unit: PlacementUnit, domain: Domain) -> float:
        """How many times a domain has room for the hardest pods of a unit now."""
        for pod_class, count in unit.totals.items():
            return self._room(pod_class, domain) / count
        return 0.0

    def _place_inside(self, unit: PlacementUnit, areas: Areas) -> bool:
        """Place a unit whose required level the areas satisfy."""
        if not self._may_fit(unit, areas[-1]):
            return False
        if unit.preferred is None or unit.preferred < len(areas[-1]):
            return self._fill(unit, areas)
        for domain in self._candidates(unit, unit.preferred, areas):
            if self._may_fit(unit, domain) and self._fill(unit, (domain,)):
                return True
        return self._split(unit, unit.preferred, areas)

    def _split(self, unit: PlacementUnit, level: int, areas: Areas) -> bool:
        """Place a unit that no preferred domain holds: as much as possible in one, the rest around it."""
        start, best_unmet, best_steps = len(self._state.steps), 2.0, list[Step]()
        preferences = Preferences(self._index, unit)
        for domain in self._largest(unit, level, areas[-1]):
            if self._fill(unit, (domain, *areas)):
                unmet = preferences.unmet(self._state.steps[start:])
                if unmet < best_unmet:
                    best_unmet, best_steps = unmet, self._state.steps[start:]
                self._undo(start)
        if not best_steps:
            return self._fill(unit, areas)
        for step in best_steps:
            self._state.put(step.load, step.node, step.pods)
        return True

    def _fill(self, unit: PlacementUnit, areas: Areas) -> bool:
        """Place everything in a unit, or leave the state as it was."""
        start = len(self._state.steps)
        for part in sorted(unit.parts, key=self._urgency):
            if not self.place(part, areas):
                self._undo(start)
                return False
        for load in sorted(unit.loads, key=self.size, reverse=True):
            if self.put(load, load.count, areas):
                self._undo(start)
                return False
        return True

    def _undo(self, steps: int) -> None:
        self._state.undo(steps)
        while self._failed_after and self._failed_after[-1][0] > steps:
            self._full.discard(self._failed_after.pop()[1])

    def _candidates(self, unit: PlacementUnit, level: int, areas: Areas) -> Iterable[Domain]:
        """Domains of a level: those that break least first, then those with the least room."""
        seen: set[Domain] = set()
        for area in areas:
            found = [each for each in self._index.subdomains(area, level) if each not in seen]
            self._work.spend(len(found))
            seen.update(found)
            yield from sorted(found, key=lambda each: self._preference(unit, each))

    def _preference(self, unit: PlacementUnit, domain: Domain) -> tuple[object, ...]:
        levels = (self._state.whole(domain[:length]) for length in range(1, len(domain) + 1))
        return (*levels, self._tightness(unit, domain), domain)

    def _largest(self, unit: PlacementUnit, level: int, area: Domain) -> list[Domain]:
        """The preferred domains that may hold most of a unit."""

        def fits(domain: Domain) -> int:
            return sum(min(n, self._room(one, domain)) for one, n in unit.totals.items())

        found = sorted(self._index.subdomains(area, level), key=lambda each: (-fits(each), each))
        return found[: timing.PLACEMENT_SPLITS]

    def size(self, load: Load) -> float:
        """How hard a pod is to place: hard ones are placed first."""
        return self._share(load.pod_class)

    def _share(self, pod_class: PodClass) -> float:
        """The share of a pod in what is free."""
        sums = self._state.view.sums.get(CLUSTER, ())
        return max((amount / max(1, sums[d]) for d, amount in pod_class.pairs), default=0.0)

    def _put_in(self, load: Load, count: int, area: Domain) -> int:
        """Put pods on the nodes of an area: those that break least first, then those with the least room.
        What has to break is used up domain by domain."""
        index, pod_class, state = self._index, load.pod_class, self._state
        members: Sequence[int] = index.members.get(area, ())
        if pod_class.confined is not None:
            members = [i for i in pod_class.confined if area in index.domains_of[i]]
        self._work.spend(len(members))
        extended = [d for d, counts in enumerate(index.extended) if counts]
        found = []
        for i in members:
            vector = state.free[i]
            slots = pod_class.slots(vector)
            if slots and pod_class.eligible(i):
                cost = self._break_cost(pod_class, i)
                scarce = sum(vector[d] for d in extended)
                found.append((cost, index.paths[i] if cost else (), scarce, slots, i))
        found.sort(key=lambda each: each[:4])
        for *_, slots, i in found:
            taken = min(count, slots)
            self._put(load, i, taken)
            count -= taken
            if not count:
                break
        return count

    def _break_cost(self, pod_class: PodClass, i: int) -> int:
        return self._state.break_cost(pod_class, i)

    def _put(self, load: Load, i: int, count: int) -> None:
        self._state.put(load, i, count)

    def _urgency(self, unit: PlacementUnit) -> tuple[int, int, float, int]:
        """Bound units first, then those with the narrowest level, then the hardest pods, then the largest."""
        level = -1 if unit.required is None else unit.required
        hardest = max((self._share(each) for each in unit.totals), default=0.0)
        return (not unit.bound, -level, -hardest, -unit.pods)
