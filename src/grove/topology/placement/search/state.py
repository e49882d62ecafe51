"""The placement under construction: what is still free, which whole domains are broken, and a log to undo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from grove.topology.placement.answers import Objective
from grove.topology.placement.index import ClusterIndex, Vector, View
from grove.topology.placement.model import Domain
from grove.topology.placement.units import Load, PlacementUnit, PodClass


class OutOfWork(Exception):
    """The work limit is reached."""


class Work:
    """Counts the steps of a search: the evaluation of one node is one step."""

    def __init__(self, limit: int) -> None:
        self.limit, self.done = limit, 0

    def spend(self, steps: int) -> None:
        self.done += steps
        if self.done > self.limit:
            raise OutOfWork


class WorkMeter:
    """Counts the steps of several searches: those for one gang, within those of all gangs."""

    def __init__(self, limit: int, within: WorkMeter | None = None) -> None:
        self.left, self._within = limit, within

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self._within is not None:
            self._within.spend(steps)


class Step(NamedTuple):
    """Pods that were put on a node."""

    load: Load
    node: int
    pods: int
    free_before: Vector
    made_busy: bool


class Counted(Protocol):
    """Something of which a number fits on a node."""

    number: int

    def eligible(self, i: int) -> bool: ...

    def slots(self, free: Vector) -> int: ...


class State:
    def __init__(self, index: ClusterIndex, view: View, counted: Sequence[Counted] = ()) -> None:
        """For `counted`, the room that is taken is known by domain."""
        self.index, self.view = index, view
        self._counted = counted
        self._taken: list[dict[Domain, int]] = [{} for _ in counted]
        self._admitted: dict[int, int] = {}
        self._changes: dict[tuple[Vector, Vector, int], tuple[tuple[int, int], ...]] = {}
        self.free = view.free.copy()
        self.busy_nodes = view.busy_nodes.copy()
        self.made_busy: Counter[Domain] = Counter()
        self.broken = [0] * len(index.levels)
        self.steps: list[Step] = []

    def whole(self, domain: Domain) -> bool:
        return not self.view.busy.get(domain) and not self.made_busy[domain]

    def taken(self, each: Counted, domain: Domain) -> int:
        """How many fewer fit into a domain than before the first step."""
        return self._taken[each.number].get(domain, 0)

    def put(self, load: Load, i: int, count: int) -> None:
        """Put pods on a node."""
        before = self.free[i]
        after = list(before)
        for d, amount in load.pod_class.pairs:
            after[d] -= amount * count
        self.free[i] = tuple(after)
        self._count(i, before, self.free[i])
        made_busy = not self.busy_nodes[i] and load.pod_class.makes_busy(i)
        if made_busy:
            self._mark_busy(i)
        self.steps.append(Step(load, i, count, before, made_busy))

    def undo(self, steps: int) -> None:
        """Take back all steps after the first ones."""
        while len(self.steps) > steps:
            step = self.steps.pop()
            self._count(step.node, self.free[step.node], step.free_before)
            self.free[step.node] = step.free_before
            if step.made_busy:
                self._mark_idle(step.node)

    def break_cost(self, pod_class: PodClass, i: int) -> int:
        """How much breaks if a pod goes to a node: one bit for each level, the broadest is the highest, and
        the lowest for the node itself."""
        if self.busy_nodes[i] or not pod_class.makes_busy(i):
            return 0
        cost = 1
        for domain in self.index.domains_of[i]:
            if domain and self.whole(domain):
                cost |= 1 << (len(self.index.levels) + 1 - len(domain))
        return cost

    def _count(self, i: int, before: Vector, after: Vector) -> None:
        """Count the room that is taken. Nodes that admit the same and have the same free share the answer."""
        if not self._counted:
            return
        admitted = self._admitted.get(i)
        if admitted is None:
            admitted = self._admitted[i] = sum(1 << each.number for each in self._counted if each.eligible(i))
        key = (before, after, admitted)
        changes = self._changes.get(key)
        if changes is None:
            changes = self._changes[key] = tuple(
                (each.number, change)
                for each in self._counted
                if admitted >> each.number & 1 and (change := each.slots(before) - each.slots(after))
            )
        domains = self.index.domains_of[i]
        for number, change in changes:
            taken = self._taken[number]
            for domain in domains:
                taken[domain] = taken.get(domain, 0) + change

    def _mark_busy(self, i: int) -> None:
        self.busy_nodes[i] = True
        for domain in self.index.domains_of[i]:
            if domain and self.whole(domain):
                self.broken[len(domain) - 1] += 1
            self.made_busy[domain] += 1

    def _mark_idle(self, i: int) -> None:
        self.busy_nodes[i] = False
        for domain in self.index.domains_of[i]:
            self.made_busy[domain] -= 1
            if domain and self.whole(domain):
                self.broken[len(domain) - 1] -= 1


class Preferences:
    """The units with a preferred level, and the score of a placement."""

    def __init__(self, index: ClusterIndex, gang: PlacementUnit) -> None:
        self._index = index
        self.units = [unit for unit in gang.walk() if unit.preferred is not None and unit.pods]

    def unmet(self, steps: list[Step]) -> float:
        """1 - score."""
        if not self.units:
            return 0.0
        counts = {id(unit): self.bound_counts(unit) for unit in self.units}
        for step in steps:
            unit: PlacementUnit | None = step.load.unit
            while unit is not None:
                if id(unit) in counts and unit.preferred is not None:
                    counts[id(unit)][self._index.domain_at(step.node, unit.preferred)] += step.pods
                unit = unit.outer
        return sum(1 - best(counts[id(unit)]) / unit.pods for unit in self.units) / len(self.units)

    def bound_counts(self, unit: PlacementUnit) -> Counter[Domain | None]:
        """By preferred domain, pods that are bound already."""
        assert unit.preferred is not None
        return Counter(self._index.domain_at(i, unit.preferred) for i in unit.bound)


def best(counts: Counter[Domain | None]) -> int:
    """The most pods in one domain; nodes without the label are in none."""
    return max((count for domain, count in counts.items() if domain is not None), default=0)


def objective(unmet: float, broken: list[int]) -> Objective:
    return Objective(round(unmet, 9), tuple(broken))
