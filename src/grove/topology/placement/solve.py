"""Finds a place for a gang: the best one by the objective, or why there is none.

The domains of the gang are tried in the order of what they can achieve at best. In each, pods are placed
without backtracking first; where that fails or may not be the best, a complete search follows, within limits.
"""

from __future__ import annotations

import sys
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from msgspec.structs import replace

from grove import timing
from grove.topology.placement.answers import (
    Answer,
    GaveUp,
    NoFit,
    Objective,
    Placed,
    Reason,
    Shortage,
    one_shortage,
)
from grove.topology.placement.candidates import gang_domains
from grove.topology.placement.explain import explain
from grove.topology.placement.index import ClusterIndex, View
from grove.topology.placement.model import Domain, Problem, Unit
from grove.topology.placement.result import placed
from grove.topology.placement.search.bounds import Bounds
from grove.topology.placement.search.complete import Search
from grove.topology.placement.search.greedy import Greedy
from grove.topology.placement.search.joint import joint_classes
from grove.topology.placement.search.packing import Packing
from grove.topology.placement.search.state import OutOfWork, Preferences, State, Step, Work, objective
from grove.topology.placement.units import Compiler

Found = tuple[Objective, list[Step]]


def solve(
    index: ClusterIndex,
    problem: Problem,
    work_limit: int = timing.PLACEMENT_WORK,
    improvement_limit: int = timing.PLACEMENT_IMPROVEMENT_WORK,
) -> Answer:
    """Place a gang. The improvement limit bounds the search for a better placement than the first one; with 0
    the first one is the answer."""
    below = problem.preempt_below
    view = (
        index.actual if below is None and not problem.vacated else index.view_without(below, problem.vacated)
    )
    if problem.further:
        joint = _solve_partitions(index, view, _with_further(problem), work_limit, improvement_limit)
        if isinstance(joint, Placed):
            return _without_further(problem, joint)
    answer = _solve_partitions(index, view, problem, work_limit, improvement_limit)
    if isinstance(answer, Placed):
        return replace(answer, room_for_further=not problem.further)
    if isinstance(answer, NoFit):
        return replace(answer, fits_if_empty=_fits_if_empty(index, problem, work_limit // 10))
    return answer


def _fits_if_empty(index: ClusterIndex, problem: Problem, work_limit: int) -> bool | None:
    """Whether a gang fits into the cluster without any use; None if that is not found out within the limit.
    The answer only explains a refusal, so it gets a small part of the work."""
    empty = replace(problem, excluded={}, further=())
    answer = _solve_partitions(index, index.empty, empty, work_limit, 0)
    return None if isinstance(answer, GaveUp) else isinstance(answer, Placed)


def _solve_partitions(
    index: ClusterIndex, view: View, problem: Problem, work_limit: int, improvement_limit: int
) -> Answer:
    """Place a gang whose fabric pods have one value of the label of a partition, if it has one. The values
    share the work limit."""
    partition = problem.partition
    if partition is None:
        return _Attempt(index, view, problem, work_limit, improvement_limit).answer()
    values = sorted({node.labels[partition.key] for node in index if partition.key in node.labels})
    share = work_limit // max(1, len(values))
    answers = [_Attempt(index, view, problem, share, improvement_limit, each).answer() for each in values]
    found = [each for each in answers if isinstance(each, Placed)]
    if found:
        return min(found, key=lambda each: each.objective)
    if not partition.required:
        return _solve_partitions(index, view, replace(problem, partition=None), work_limit, improvement_limit)
    if work := sum(each.work for each in answers if isinstance(each, GaveUp)):
        return GaveUp(work)
    refused = [each for each in answers if isinstance(each, NoFit)]
    if not refused:
        shortage = Shortage(Reason.NO_DOMAIN, resource=partition.key)
        return NoFit((one_shortage(problem.within, problem.gang.name, shortage),), 0, None)
    reports = tuple(report for each in refused for report in each.reports)
    return NoFit(reports[: timing.PLACEMENT_DOMAINS_EXPLAINED], len(values), None)


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
    """One gang, with the fabric pods in one partition if it has a value."""

    def __init__(
        self,
        index: ClusterIndex,
        view: View,
        problem: Problem,
        work_limit: int,
        improvement_limit: int,
        value: str = "",
    ) -> None:
        self._index, self._view, self._problem = index, view, problem
        self._work = work = Work(work_limit)
        self._improvement_limit = improvement_limit
        self._compiler = Compiler(index, problem.partition, value)
        self._gang = self._compiler.compile(problem.gang)
        self._preferences = Preferences(index, self._gang)
        joints = joint_classes(index, self._compiler.classes)
        self._bounds = Bounds(index, view, work, joints)
        self._state = State(index, view, [*self._compiler.classes, *joints])
        self._best: Found | None = None

    def answer(self) -> Answer:
        candidates = gang_domains(self._index, self._gang, self._problem)
        optimal = True
        try:
            tried = self._place_greedily(candidates)
            if self._best is None and not self._decided_soon(tried):
                self._pack(tried)
            self._search(tried)
        except OutOfWork:
            optimal = False
        if self._best is not None:
            return placed(self._index, self._state, self._bounds, self._gang, self._best[1], optimal)
        if not optimal:
            return GaveUp(self._work.done)
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
        if self._best is None:
            return True
        return self._improvement_limit > 0 and candidate.bound < self._best[0]

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
        if self._best is None or found < self._best[0]:
            self._best = found, steps.copy()

    def _search(self, candidates: list[_Candidate]) -> None:
        state = State(self._index, self._view)
        for candidate in candidates:
            if not self._may_improve(candidate):
                continue
            search = Search(self._index, state, self._gang, self._compiler.classes, self._best, self._work)
            try:
                search.run(candidate.domain)
            finally:
                self._best = search.best
                state.undo(0)


def _with_further(problem: Problem) -> Problem:
    """The gang and all that follows it, as one gang. A scaled gang may have the name of a group replica of
    the base gang: answers distinguish units by name."""
    gang = problem.gang
    further = (replace(each, name=f"later {each.name}") for each in problem.further)
    return replace(problem, gang=replace(gang, parts=(*gang.parts, *further)), further=())


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
