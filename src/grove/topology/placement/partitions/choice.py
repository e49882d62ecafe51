"""Chooses the values of partitions for a gang: each partition gets one value, which all of its pods share.

Values with too little room are left out by sums over nodes; of the others the tightest is tried first. A
preferred partition that cannot have one value gets none: its pods may go anywhere. A gang is placed without
regard to preferred partitions first, so that they never keep it from being placed; the work that is left is
used to give them values, earlier ones before later ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from grove import timing
from grove.topology.placement.answers import (
    Answer,
    DomainReport,
    GaveUp,
    NoFit,
    Objective,
    Placed,
    Reason,
    Shortage,
    one_shortage,
)
from grove.topology.placement.index import ClusterIndex, View
from grove.topology.placement.model import Partition, Problem
from grove.topology.placement.partitions.rooms import PartitionRooms, shapes_to_place
from grove.topology.placement.partitions.values import Options, Values, combinations


class Tried(NamedTuple):
    """What one search has found, and what it cost."""

    answer: Answer | None
    """None: no placement is better than the one that was known."""
    work: int


class BestPossible(NamedTuple):
    """No placement is better than this, whatever the values are; None if that is not known."""

    objective: Objective | None
    work: int


class PartitionSearch(NamedTuple):
    """The searches for given values."""

    attempt: Callable[[Values, int, Objective | None, bool], Tried]
    """Places the gang with these values, with up to so much work, better than a known placement. A refusal is
    explained only if it is asked for."""
    best_possible: Callable[[], BestPossible]
    improvement_limit: int
    """The work for other values, once a placement is found."""


def place_in_partitions(
    index: ClusterIndex, view: View, problem: Problem, work_limit: int, search: PartitionSearch
) -> Answer:
    """Place a gang with the values of its partitions that are best by the objective."""
    shapes, most = shapes_to_place(problem.gang), timing.PLACEMENT_PACKED_DOMAINS
    required = [number for number in shapes if problem.partitions[number].required]
    if len(required) > most:
        shortage = Shortage(Reason.TOO_MANY_PARTITIONS, have=most, need=len(required))
        return NoFit((one_shortage(problem.within, problem.gang.name, shortage),), 1, None)
    preferred = [number for number in shapes if number not in required][: most - len(required)]

    def rooms() -> PartitionRooms:
        return PartitionRooms(index, view, problem, shapes, (*required, *preferred))

    choice = _Choice(problem, rooms, work_limit, search)
    strict = {number: choice.options_of(number)[0] for number in required}
    answer = choice.best(strict, work_limit, explained=True)
    if not isinstance(answer, Placed) or not preferred:
        return answer
    if choice.work_left <= 0:
        return replace(answer, optimal=False)
    return _with_preferred(
        choice, answer, strict, {number: choice.options_of(number) for number in preferred}
    )


def _with_preferred(
    choice: _Choice, answer: Placed, required: Options, preferred: Mapping[int, Sequence[Sequence[str]]]
) -> Placed:
    """A placement in which as many preferred partitions as possible have a value. All of them are tried
    together, then one after another, each with a share of the work that is left."""
    steps = [(number, values) for number, options in preferred.items() for values in options]
    if not steps:
        return answer  # no node has their labels
    together = choice.best(
        {**required, **{number: options[0] for number, options in preferred.items() if options}},
        choice.work_left // 2,
    )
    if isinstance(together, Placed):
        return together
    decided, complete = dict(required), isinstance(together, NoFit)
    for position, (number, values) in enumerate(steps):
        if number in decided:
            continue
        found = choice.best({**decided, number: values}, choice.work_left // (len(steps) - position))
        complete = complete and not isinstance(found, GaveUp)
        if isinstance(found, Placed):
            decided[number], answer = values, found
    return replace(answer, optimal=answer.optimal and complete)


class _Budget:
    """The work of one choice of values."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used, self.attempts = limit, 0, 0

    @property
    def left(self) -> int:
        return self.limit - self.used

    def spend(self, steps: int) -> bool:
        self.used += steps
        return self.left > 0


class _Choice:
    def __init__(
        self,
        problem: Problem,
        rooms: Callable[[], PartitionRooms],
        work_limit: int,
        search: PartitionSearch,
    ) -> None:
        self._problem, self._read_rooms, self._search = problem, rooms, search
        self._known_rooms: PartitionRooms | None = None
        self._known_bound: BestPossible | None = None
        self._limit = self.work_left = work_limit

    @property
    def _rooms(self) -> PartitionRooms:
        """Read once values are needed: a gang without required partitions is placed before."""
        if self._known_rooms is None:
            self._known_rooms = self._read_rooms()
            self.work_left -= self._known_rooms.work
        return self._known_rooms

    def options_of(self, number: int) -> list[Sequence[str]]:
        """What is tried for a partition one after another, from strict to loose."""
        partition, rooms = self._problem.partitions[number], self._rooms.by_value[number]
        values = sorted(rooms, key=lambda value: (rooms[value].places, value))
        fixed = [value for value in values if value == partition.value]
        if partition.required:
            return [fixed if partition.value else values]
        return [each for each in (fixed, values) if each]

    def best(self, options: Options, limit: int, *, explained: bool = False) -> Answer:
        """The best placement with one of the options of each partition; partitions without options get no
        value. `explained`: with the reasons of a refusal."""
        if not options:
            return self._without_values(limit)
        empty = next((number for number, values in options.items() if not values), None)
        if empty is not None:
            return self._no_value(self._problem.partitions[empty])
        budget = _Budget(min(limit, self.work_left))
        best, complete = self._search_combinations(options, budget)
        self.work_left -= budget.used
        if best is not None:
            return replace(best, optimal=complete)
        if not complete:
            return GaveUp(self._limit - self.work_left)
        return self._refused(options) if explained else NoFit((), 0, None)

    def _without_values(self, limit: int) -> Answer:
        """A placement without regard to partitions, the same that a gang without them gets."""
        values = ("",) * len(self._problem.partitions)
        tried = self._search.attempt(values, limit, None, True)
        self.work_left -= tried.work
        assert tried.answer is not None  # nothing is known
        return replace(tried.answer, partitions=values) if isinstance(tried.answer, Placed) else tried.answer

    def _search_combinations(self, options: Options, budget: _Budget) -> tuple[Placed | None, bool]:
        """The best placement that was found, and whether the search was completed."""
        found = combinations(self._problem, self._rooms, options, budget.spend)
        ahead = deque(islice(found, timing.PLACEMENT_PARTITION_SHARES))
        best: Placed | None = None
        complete = True
        while ahead and budget.left > 0:
            values = ahead.popleft()
            ahead.extend(islice(found, 1))
            known = best.objective if best is not None else None
            if known is not None and self._is_best_possible(known, budget):
                return best, complete
            # An attempt leaves work for the next ones. The first one mostly succeeds.
            share = len(ahead) + 1 if budget.attempts else min(2, len(ahead) + 1)
            tried = self._search.attempt(values, budget.left // share, known, False)
            budget.attempts += 1
            budget.spend(tried.work)
            complete = complete and not isinstance(tried.answer, GaveUp)
            if isinstance(tried.answer, Placed):
                best = replace(tried.answer, partitions=values)
                complete = complete and tried.answer.optimal
                if known is None:
                    budget.limit = min(budget.limit, budget.used + self._search.improvement_limit)
        return best, complete and budget.left > 0

    def _is_best_possible(self, known: Objective, budget: _Budget) -> bool:
        if self._known_bound is None:
            self._known_bound = self._search.best_possible()
            budget.spend(self._known_bound.work)
        bound = self._known_bound.objective
        return bound is not None and known <= bound

    def _no_value(self, partition: Partition) -> NoFit:
        """The refusal of a partition whose label no node has, or none with the only value that is left."""
        shortage = Shortage(Reason.NO_DOMAIN, resource=partition.key)
        report = one_shortage(self._problem.within, self._problem.gang.name, shortage)
        return NoFit((_named(report, partition, partition.value),), 0, None)

    def _refused(self, options: Options) -> Answer:
        """Why there is no placement, for the values that come closest. With several partitions the first one
        shows it: the others may be in its way."""
        partitions, number = self._problem.partitions, next(iter(options))
        rooms = self._rooms.by_value[number]
        closest = sorted(options[number], key=lambda value: (-rooms[value].places, value))
        reports: list[DomainReport] = []
        for value in closest[: timing.PLACEMENT_DOMAINS_EXPLAINED]:
            values = tuple(value if each == number else "" for each in range(len(partitions)))
            answer = self._search.attempt(values, timing.PLACEMENT_PROOF_WORK, None, True).answer
            found = answer.reports if isinstance(answer, NoFit) else (self._fragmented(number),)
            reports += (_named(each, partitions[number], value) for each in found)
        return NoFit(tuple(reports[: timing.PLACEMENT_DOMAINS_EXPLAINED]), len(options[number]), None)

    def _fragmented(self, number: int) -> DomainReport:
        shortage = Shortage(Reason.FRAGMENTED, need=self._rooms.pods(number))
        return one_shortage(self._problem.within, self._problem.gang.name, shortage)


def _named(report: DomainReport, partition: Partition, value: str) -> DomainReport:
    """The report with the partition that it is about, and without the nodes of other partitions."""
    about_others = Reason.SELECTOR, partition.key
    kept = tuple(each for each in report.shortages if (each.reason, each.resource) != about_others)
    name = f"{partition.key} {value or 'of any value'}"
    name += ", where its fabric domain has pods" if partition.value else ""
    return replace(report, shortages=kept or report.shortages, partition=name)
