"""The complete search: every pod on every node that admits it, pruned by the objective. It finds the optimum
or shows that there is no placement, unless the work limit is reached before.

Two rules skip arrangements that differ in names only: pods of one load are placed in the order of nodes, and
of nodes that are equal in all that matters only the first is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from grove import timing
from grove.topology.placement.answers import Objective
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Domain
from grove.topology.placement.search.state import Preferences, State, Step, Work, best, objective
from grove.topology.placement.units import Load, PlacementUnit, PodClass


class Search:
    """Improves on an incumbent, if there is one; `best` is what it found."""

    def __init__(
        self,
        index: ClusterIndex,
        state: State,
        gang: PlacementUnit,
        classes: list[PodClass],
        incumbent: tuple[Objective, list[Step]] | None,
        work: Work,
    ) -> None:
        self.best = incumbent
        self._index, self._state, self._work, self._classes = index, state, work, classes
        self._loads = [load for unit in gang.walk() for load in unit.loads for _ in range(load.count)]
        self._preferences = _PreferenceCounts(index, gang)
        self._domains: dict[int, Domain] = {}
        """By unit with a required level, the domain that its first pod decided."""
        self._masks: dict[int, int] = {}
        self._units = {id(load): _around(load) for load in self._loads}

    def run(self, area: Domain) -> None:
        """Search all placements in one domain. Raises OutOfWork; `best` is valid then, too."""
        start = len(self._state.steps)
        members = self._index.members.get(area, [])
        if not self._loads:
            self._record(start)
            return
        choices = [self._choices(0, 0, members)]
        entered: list[list[int]] = []
        """By depth, the units whose domain was decided there."""
        while choices:
            rank = next(choices[-1], None)
            if rank is None:
                choices.pop()
                if entered:
                    self._leave(entered.pop())
                continue
            depth = len(choices) - 1
            entered.append(self._enter(self._loads[depth], members[rank]))
            if not self._promising():
                self._leave(entered.pop())
            elif depth + 1 == len(self._loads):
                self._record(start)
                self._leave(entered.pop())
            else:
                same = self._loads[depth + 1] is self._loads[depth]
                choices.append(self._choices(depth + 1, rank if same else 0, members))

    def _choices(self, depth: int, first: int, members: list[int]) -> Iterator[int]:
        """The nodes that a pod can go to, as positions in the area: those that break least first."""
        load, state = self._loads[depth], self._state
        pod_class, units = load.pod_class, self._units[id(load)]
        self._work.spend(len(members) - first + 1)
        found, seen = [], set[object]()
        for rank in range(first, len(members)):
            i = members[rank]
            free = state.free[i]
            if pod_class.slots(free) and pod_class.eligible(i) and self._admits(units, i):
                same = (free, self._index.paths[i], state.busy_nodes[i], self._mask(i))
                if same not in seen:
                    seen.add(same)
                    found.append((state.break_cost(pod_class, i), rank))
        found.sort()
        return iter([rank for _, rank in found])

    def _admits(self, units: list[PlacementUnit], i: int) -> bool:
        for unit in units:
            assert unit.required is not None
            domain = self._index.domain_at(i, unit.required)
            if domain is None or not unit.allows(domain) or self._domains.get(id(unit), domain) != domain:
                return False
        return True

    def _enter(self, load: Load, i: int) -> list[int]:
        self._work.spend(timing.PLACEMENT_STEP_WORK)
        self._state.put(load, i, 1)
        self._preferences.add(load, i, 1)
        decided = []
        for unit in self._units[id(load)]:
            if id(unit) not in self._domains:
                assert unit.required is not None
                domain = self._index.domain_at(i, unit.required)
                assert domain is not None
                self._domains[id(unit)] = domain
                decided.append(id(unit))
        return decided

    def _leave(self, decided: list[int]) -> None:
        for unit in decided:
            del self._domains[unit]
        step = self._state.steps[-1]
        self._preferences.add(step.load, step.node, -1)
        self._state.undo(len(self._state.steps) - 1)

    def _promising(self) -> bool:
        """Whether what is placed may still become better than the best placement so far."""
        if self.best is None:
            return True
        return objective(self._preferences.unmet(), self._state.broken) < self.best[0]

    def _record(self, start: int) -> None:
        found = objective(self._preferences.unmet(), self._state.broken)
        if self.best is None or found < self.best[0]:
            self.best = found, self._state.steps[start:]

    def _mask(self, i: int) -> int:
        """Which classes a node admits, as bits."""
        found = self._masks.get(i)
        if found is None:
            found = sum(1 << n for n, each in enumerate(self._classes) if each.eligible(i))
            self._masks[i] = found
        return found


class _PreferenceCounts:
    """By unit and preferred domain, how many pods are there, and how many are still to be placed."""

    def __init__(self, index: ClusterIndex, gang: PlacementUnit) -> None:
        self._index = index
        preferences = Preferences(index, gang)
        self._units = {id(unit): unit for unit in preferences.units}
        self._counts = {id(unit): preferences.bound_counts(unit) for unit in preferences.units}
        self._left = {id(unit): unit.totals.total() for unit in preferences.units}

    def add(self, load: Load, i: int, count: int) -> None:
        unit: PlacementUnit | None = load.unit
        while unit is not None:
            counts: Counter[Domain | None] | None = self._counts.get(id(unit))
            if counts is not None and unit.preferred is not None:
                counts[self._index.domain_at(i, unit.preferred)] += count
                self._left[id(unit)] -= count
            unit = unit.outer

    def unmet(self) -> float:
        """1 - score, if all pods that are still to be placed go to the best domain of each unit."""
        if not self._units:
            return 0.0
        shares = ((best(self._counts[u]) + self._left[u]) / unit.pods for u, unit in self._units.items())
        return sum(1 - share for share in shares) / len(self._units)


def _around(load: Load) -> list[PlacementUnit]:
    """The units with a required level that a load is part of."""
    found, unit = [], load.unit
    while unit is not None:
        if unit.required is not None:
            found.append(unit)
        unit = unit.outer  # type: ignore[assignment]
    return found
