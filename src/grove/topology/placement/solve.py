"""Finds a place for a gang: the best one by the objective, or why there is none.

The domains of the gang are tried in the order of what they can achieve at best. In each, pods are placed
without backtracking first; where that fails or may not be the best, a complete search follows, within limits.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from msgspec.structs import replace

from grove import timing
from grove.topology.placement.answers import Answer, GaveUp, NoFit, Objective, Placed
from grove.topology.placement.candidates import gang_domains
from grove.topology.placement.explain import explain
from grove.topology.placement.index import ClusterIndex, View
from grove.topology.placement.model import CLUSTER, Domain, Problem, Unit
from grove.topology.placement.partitions.choice import (
    BestPossible,
    PartitionSearch,
    Tried,
    place_in_partitions,
)
from grove.topology.placement.partitions.values import Values
from grove.topology.placement.result import placed
from grove.topology.placement.search.bounds import Bounds
from grove.topology.placement.search.complete import Search
from grove.topology.placement.search.greedy import Greedy
from grove.topology.placement.search.joint import joint_classes
from grove.topology.placement.search.packing import Packing
from grove.topology.placement.search.state import (
    OutOfWork,
    Preferences,
    State,
    Step,
    Work,
    WorkMeter,
    objective,
)
from grove.topology.placement.units import Compiler

Found = tuple[Objective, list[Step]]
Labelled = Mapping[tuple[str, str], Sequence[int]]
"""By label and value, the nodes that have it."""


def solve(
    index: ClusterIndex,
    problem: Problem,
    work_limit: int = timing.PLACEMENT_WORK,
    improvement_limit: int = timing.PLACEMENT_IMPROVEMENT_WORK,
    meter: WorkMeter | None = None,
) -> Answer:
    """Place a gang. The improvement limit bounds the search for a better placement than the first one; with 0
    the first one is the answer. `meter`: what is left for this and other searches together."""
    meter = meter or WorkMeter(sys.maxsize)
    if meter.left <= 0:
        return GaveUp(0)
    below, view = problem.preempt_below, index.actual
    if below is not None or problem.vacated:
        view = index.view_without(below, problem.vacated)
        meter.spend(len(index.ids))
    for joint_problem in _joint_problems(problem):
        limit = min(work_limit, meter.left // timing.PLACEMENT_JOINT_SHARE)
        joint = _solve_partitions(index, view, joint_problem, limit, improvement_limit, meter)
        if isinstance(joint, Placed):
            return _without_further(problem, joint)
    limit = min(work_limit, meter.left)
    answer = _solve_partitions(index, view, problem, limit, improvement_limit, meter)
    if isinstance(answer, Placed):
        return replace(answer, room_for_further=not problem.further)
    if isinstance(answer, NoFit):
        return replace(answer, fits_if_empty=_fits_if_empty(index, problem, work_limit // 10, meter))
    return answer


def _fits_if_empty(index: ClusterIndex, problem: Problem, work_limit: int, meter: WorkMeter) -> bool | None:
    """Whether a gang fits into the cluster without any use; None if that is not found out within the limit.
    The answer only explains a refusal, so it gets a small part of the work."""
    empty = replace(problem, excluded={}, further=())
    answer = _solve_partitions(index, index.empty, empty, work_limit, 0, meter)
    return None if isinstance(answer, GaveUp) else isinstance(answer, Placed)


def _solve_partitions(
    index: ClusterIndex,
    view: View,
    problem: Problem,
    work_limit: int,
    improvement_limit: int,
    meter: WorkMeter,
) -> Answer:
    """Place a gang, the pods of each of its partitions on nodes with one value."""
    if not problem.partitions:
        only = _Attempt(index, view, problem, work_limit, improvement_limit)
        answer = only.answer()
        meter.spend(only.work + only.preparation)
        return answer

    labelled: dict[tuple[str, str], list[int]] = {}

    def attempt(values: Values, work: int, known: Objective | None, explained: bool) -> Tried:
        if any(values) and not labelled:
            labelled.update(_labelled(index, problem))
        one = _Attempt(index, view, problem, work, improvement_limit, values, known, labelled)
        answer = one.answer_if_better(explained)
        meter.spend(one.work if any(values) else one.work + one.preparation)
        return Tried(answer, one.work)

    def best_possible() -> BestPossible:
        one = _Attempt(index, view, problem, timing.PLACEMENT_PROOF_WORK, 0)
        found = one.best_possible()
        meter.spend(one.work + one.preparation)
        return BestPossible(found, one.work)

    search = PartitionSearch(attempt, best_possible, improvement_limit)
    return place_in_partitions(index, view, problem, work_limit, search)


def _labelled(index: ClusterIndex, problem: Problem) -> dict[tuple[str, str], list[int]]:
    """By label of a partition and its value, the nodes that have it."""
    found: dict[tuple[str, str], list[int]] = {}
    for key in {each.key for each in problem.partitions}:
        for i in index.members[CLUSTER]:
            if value := index.node(i).labels.get(key):
                found.setdefault((key, value), []).append(i)
    return found


class _Candidate(NamedTuple):
    """A domain for the gang. They are tried in this order: what they achieve at best, the former domain, and
    the least room."""

    bound: Objective
    other: bool
    """Whether it is not the former domain."""
    tightness: float
    domain: Domain
    exact: bool
    """Whether the bound is more than a guess from sums."""


class _Attempt:
    """One gang, with these values of its partitions. With a known objective, only a better placement is
    searched for."""

    def __init__(
        self,
        index: ClusterIndex,
        view: View,
        problem: Problem,
        work_limit: int,
        improvement_limit: int,
        values: Values = (),
        known: Objective | None = None,
        labelled: Labelled | None = None,
    ) -> None:
        self._index, self._view, self._problem, self._known = index, view, problem, known
        self._work = work = Work(work_limit)
        self._improvement_limit = improvement_limit
        self._compiler = Compiler(index, problem.partitions, values, labelled)
        self._gang = self._compiler.compile(problem.gang)
        self._preferences = Preferences(index, self._gang)
        joints = joint_classes(index, self._compiler.classes)
        self._bounds = Bounds(index, view, work, joints)
        self._state = State(index, view, [*self._compiler.classes, *joints])
        self._best: Found | None = None
        self._spends_preparation = any(values)

    @property
    def preparation(self) -> int:
        """The work for the form that the solver works on. It is done again for each choice of values, and is
        part of the limit then."""
        units = list(self._gang.walk())
        pods = sum(len(load.pods) + len(load.extra) for unit in units for load in unit.loads)
        return (
            len(units) * timing.PLACEMENT_UNIT_WORK
            + pods * timing.PLACEMENT_POD_WORK
            + len(self._compiler.classes) ** 2
        )

    @property
    def work(self) -> int:
        """The work that was done."""
        return self._work.done

    def best_possible(self) -> Objective | None:
        """No placement is better than this; None if that is not found out within the limit."""
        try:
            domains = gang_domains(self._index, self._gang, self._problem)
            fitting = (each for each in domains if self._bounds.may_fit(self._gang, each))
            bounds = (self._bounds.objective(self._gang, each, self._preferences) for each in fitting)
            return min(bounds, default=None)
        except OutOfWork:
            return None

    def answer(self) -> Answer:
        answer = self.answer_if_better(explained=True)
        assert answer is not None  # nothing is known
        return answer

    def answer_if_better(self, explained: bool) -> Answer | None:
        """The answer; None if no placement is better than what is known. `explained`: with the reasons of a
        refusal."""
        candidates = gang_domains(self._index, self._gang, self._problem)
        optimal = True
        try:
            if self._spends_preparation:
                self._work.spend(self.preparation)
            tried = self._place_greedily(candidates)
            if self._best is None and self._known is None and not self._decided_soon(tried):
                self._pack(tried)
            self._search(tried)
        except OutOfWork:
            optimal = False
        if self._best is not None:
            return placed(self._index, self._state, self._bounds, self._gang, self._best[1], optimal)
        if not optimal:
            return GaveUp(self._work.done)
        if self._known is not None:
            return None
        if not explained:
            return NoFit((), 0, None)
        self._work.limit = sys.maxsize  # an explanation looks once at the nodes of a few domains
        return explain(self._index, self._bounds, self._gang, self._problem, candidates)

    def _place_greedily(self, candidates: list[Domain]) -> list[_Candidate]:
        """Try domains in the order of what they achieve at best, until none can be better than what is found.
        Returns those where a complete search may find more."""
        left = [each for domain in candidates if (each := self._guess(domain)) is not None]
        heapify(left)
        tried = []
        while left and self._may_improve(left[0]):
            candidate = heappop(left)
            if not candidate.exact:
                if not self._bounds.may_fit(self._gang, candidate.domain):
                    continue
                if self._improvement_limit:
                    bound = self._bounds.objective(self._gang, candidate.domain, self._preferences)
                    heappush(left, candidate._replace(bound=bound, exact=True))
                    continue
            tried.append(candidate)
            greedy = Greedy(self._index, self._state, self._bounds, self._work)
            if greedy.place(self._gang, (candidate.domain,)):
                self._record()
            self._state.undo(0)
        return tried

    def _decided_soon(self, candidates: list[_Candidate]) -> bool:
        """Whether the complete search finds or excludes a placement in a small part of the work."""
        limit = self._work.limit
        self._work.limit = min(limit, self._work.done + timing.PLACEMENT_PROOF_WORK)
        try:
            self._search(candidates)
        except OutOfWork:
            return self._best is not None
        finally:
            self._work.limit = limit
        return True

    def _pack(self, candidates: list[_Candidate]) -> None:
        """Try to pack the gang into one of the domains: first briefly into each, then longer."""
        for rounds in timing.PLACEMENT_PACKING_ROUNDS:
            for candidate in candidates:
                domain = candidate.domain
                packing = Packing(self._index, self._state, self._bounds, self._work, self._gang, domain)
                if packing.run(rounds):
                    self._record()
                self._state.undo(0)
                if self._best is not None:
                    return

    def _may_improve(self, candidate: _Candidate) -> bool:
        """Whether a domain may be better than what is found. If that is not to be improved, none is."""
        known = self._best[0] if self._best is not None else self._known
        if known is None:
            return True
        return self._improvement_limit > 0 and candidate.bound < known

    def _guess(self, domain: Domain) -> _Candidate | None:
        self._work.spend(1)
        bound = self._bounds.first_guess(self._gang, domain)
        if bound is None:
            return None
        tightness = self._bounds.tightness(self._gang, domain)
        if self._gang.totals and tightness < 1:
            return None
        return _Candidate(bound, self._problem.former != domain, tightness, domain, False)

    def _record(self) -> None:
        steps = self._state.steps
        found = objective(self._preferences.unmet(steps), self._state.broken)
        if self._best is None:
            self._work.limit = min(self._work.limit, self._work.done + self._improvement_limit)
        known = self._best[0] if self._best is not None else self._known
        if known is None or found < known:
            self._best = found, steps.copy()

    def _search(self, candidates: list[_Candidate]) -> None:
        state = State(self._index, self._view)
        for candidate in candidates:
            if not self._may_improve(candidate):
                continue
            incumbent = self._best or (None if self._known is None else (self._known, []))
            search = Search(self._index, state, self._gang, self._compiler.classes, incumbent, self._work)
            try:
                search.run(candidate.domain)
            finally:
                self._best = self._best if search.best is incumbent else search.best
                state.undo(0)


def _joint_problems(problem: Problem) -> Iterator[Problem]:
    """What is tried before the gang alone: with all that is declared, then with what follows it."""
    if problem.looks_ahead and has_extra_pods(problem.gang):
        yield _with_further(replace(problem, gang=_with_extra_pods(problem.gang)))
    if problem.further:
        yield _with_further(problem)


def has_extra_pods(unit: Unit) -> bool:
    """Whether a unit has pods beyond the minimum."""
    return any(pod.extra for pod in unit.pods) or any(map(has_extra_pods, unit.parts))


def _with_extra_pods(unit: Unit) -> Unit:
    """The unit with all of its pods as its minimum."""
    pods = tuple(replace(pod, extra=False) if pod.extra else pod for pod in unit.pods)
    return replace(unit, pods=pods, parts=tuple(map(_with_extra_pods, unit.parts)))


def _with_further(problem: Problem) -> Problem:
    """The gang and all that follows it, as one gang, with one value of each partition. A scaled gang may have
    the name of a group replica of the base gang: answers distinguish units by name."""
    gang = problem.gang
    further = (replace(each, name=f"later {each.name}") for each in problem.further)
    partitions = tuple(replace(each, required=True) for each in problem.partitions)
    joint = replace(gang, parts=(*gang.parts, *further))
    return replace(problem, gang=joint, further=(), partitions=partitions)


def _without_further(problem: Problem, joint: Placed) -> Placed:
    """The part of a joint placement that is the gang's."""
    pods, units = set(pod_names(problem.gang)), set(unit_names(problem.gang))
    return replace(
        joint,
        nodes={pod: node for pod, node in joint.nodes.items() if pod in pods},
        domains={unit: domain for unit, domain in joint.domains.items() if unit in units},
    )


def pod_names(unit: Unit) -> list[str]:
    return [pod.name for pod in unit.pods] + [name for part in unit.parts for name in pod_names(part)]


def unit_names(unit: Unit) -> list[str]:
    return [unit.name, *(name for part in unit.parts for name in unit_names(part))]
