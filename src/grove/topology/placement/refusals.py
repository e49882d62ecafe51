"""Refusals that hold for equal gangs: they are refused by one search as long as nodes and their use are the
same. A set often has hundreds of equal replicas, and all of them wait on a full cluster.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import groupby

from msgspec.structs import asdict, replace

from grove.topology.placement.answers import GaveUp, NoFit
from grove.topology.placement.model import PodShape, Problem, Unit
from grove.topology.placement.solve import unit_names
from grove.topology.placement.units import shape_key

Refusal = NoFit | GaveUp


class Refusals:
    """What was refused, by what was asked: all that the answer depends on, without names."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Refusal, Unit]] = {}

    def find(self, asked: Hashable, unit: Unit) -> Refusal | None:
        """The refusal of an equal gang, about the units of this one."""
        known = self._known.get(asked)
        if known is None:
            return None
        answer, other = known
        if isinstance(answer, GaveUp):
            return answer
        names = dict(zip(unit_names(other), unit_names(unit), strict=True))
        reports = (replace(each, unit=names.get(each.unit, each.unit)) for each in answer.reports)
        return replace(answer, reports=tuple(reports))

    def record(self, asked: Hashable, unit: Unit, answer: Refusal) -> None:
        self._known[asked] = answer, unit


def problem_key(problem: Problem) -> Hashable:
    """Equal for problems that differ only in the names of units and pods."""
    kept = {name: value for name, value in asdict(problem).items() if name not in ("gang", "further")}
    excluded = frozenset(kept.pop("excluded").items())
    return units_key((problem.gang, *problem.further)), excluded, tuple(kept.values())


def units_key(units: Iterable[Unit]) -> Hashable:
    """Equal for units that differ only in the names of units and pods."""
    keys: dict[int, Hashable] = {}
    return tuple(_unit_key(unit, keys) for unit in units)


def _unit_key(unit: Unit, keys: dict[int, Hashable]) -> Hashable:
    pods = groupby((_shape_key(pod.shape, keys), pod.extra, pod.node) for pod in unit.pods)
    counts = tuple((each, sum(1 for _ in same)) for each, same in pods)
    return unit.required, unit.preferred, counts, tuple(_unit_key(part, keys) for part in unit.parts)


def _shape_key(shape: PodShape, keys: dict[int, Hashable]) -> Hashable:
    """Pods of one template share one shape, whose key is computed once."""
    found = keys.get(id(shape))
    if found is None:
        found = keys[id(shape)] = shape_key(shape)
    return found
