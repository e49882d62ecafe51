"""Partitions that are interchangeable: with their values exchanged, the same placements are possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

from grove.topology.placement.model import PodShape, Problem, Unit
from grove.topology.placement.partitions.rooms import shape_kind


class _Part(NamedTuple):
    """A unit without names: its levels, its pods by all that matters and their number, and its parts."""

    levels: Hashable
    pods: tuple[tuple[Hashable, tuple[int, ...], int], ...]
    parts: tuple[_Part, ...]


def predecessors(problem: Problem, order: Iterable[int], values: Mapping[int, Hashable]) -> dict[int, int]:
    """By partition, the one before it in an order that is interchangeable with it, if there is one. `values`:
    what is tried for each of them."""
    gang = _part(problem.gang, {})
    kinds: dict[Hashable, int] = {}
    unchanged = _kind(gang, {}, kinds)
    groups: dict[Hashable, list[list[int]]] = {}
    found: dict[int, int] = {}
    for number in order:
        candidates = groups.setdefault((problem.partitions[number], values[number]), [])
        exchanges = ({each[0]: number, number: each[0]} for each in candidates)
        kept = (_kind(gang, each, kinds) == unchanged for each in exchanges)
        group = next((each for each, same in zip(candidates, kept, strict=False) if same), None)
        if group is None:
            candidates.append([number])
        else:
            found[number] = group[-1]
            group.append(number)
    return found


def _part(unit: Unit, shapes: dict[int, tuple[PodShape, Hashable]]) -> _Part:
    counts: Counter[tuple[Hashable, tuple[int, ...]]] = Counter()
    for pod in unit.pods:
        if id(pod.shape) not in shapes:
            shapes[id(pod.shape)] = pod.shape, shape_kind(pod.shape)
        counts[(shapes[id(pod.shape)][1], pod.extra, pod.node), pod.shape.partitions] += 1
    pods = tuple((*each, count) for each, count in counts.items())
    return _Part((unit.required, unit.preferred), pods, tuple(_part(each, shapes) for each in unit.parts))


def _kind(part: _Part, exchanged: Mapping[int, int], kinds: dict[Hashable, int]) -> int:
    """A number that equal parts share."""
    pods = frozenset(
        (kind, frozenset(exchanged.get(each, each) for each in partitions), count)
        for kind, partitions, count in part.pods
    )
    parts = Counter(_kind(each, exchanged, kinds) for each in part.parts)
    return kinds.setdefault((part.levels, pods, frozenset(parts.items())), len(kinds))
