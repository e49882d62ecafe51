"""The pods of partitions, and the room for them on the nodes with each value of a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from grove.topology.placement.index import ClusterIndex, View
from grove.topology.placement.model import PodShape, Problem, Unit
from grove.topology.placement.units import PodClass, shape_key

Shapes = Sequence[tuple[PodShape, int]]
"""Shapes of pods, and how many pods each has."""


class Room(NamedTuple):
    """The room for the pods of one partition on the nodes with one value of its label."""

    enough: bool
    """Whether there is enough for the pods of each shape alone."""
    places: int
    """How many of the pods fit at most."""


class PartitionRooms:
    """The pods of some partitions, and the room for them by value. Nodes are evaluated once for all pods of
    equal shape: the domains of a gang are mostly alike."""

    def __init__(
        self, index: ClusterIndex, view: View, problem: Problem, shapes: dict[int, Shapes], of: Iterable[int]
    ) -> None:
        self.work = 0
        """How many evaluations of a node it took."""
        self.by_value: dict[int, dict[str, Room]] = {}
        self.hosts: Counter[tuple[str, str]] = Counter()
        """By label and value, on how many nodes a pod of any partition fits that needs a node of its own."""
        self._index, self._view, self._shapes = index, view, shapes
        self._slots: dict[tuple[str, Hashable], dict[str, int]] = {}
        self._hosts: dict[tuple[str, str], set[int]] = {}
        known: dict[Hashable, dict[str, Room]] = {}
        for number in of:
            key = problem.partitions[number].key
            kinds = tuple((shape_kind(shape), count) for shape, count in shapes[number])
            if (key, kinds) not in known:
                known[key, kinds] = self._rooms(key, shapes[number])
            self.by_value[number] = known[key, kinds]
        self.hosts.update({each: len(nodes) for each, nodes in self._hosts.items()})

    def exclusive_pods(self, number: int) -> int:
        """How many pods of a partition need a node of their own."""
        return sum(count for shape, count in self._shapes[number] if shape.fabric)

    def pods(self, number: int) -> int:
        """How many pods of a partition are to be placed."""
        return sum(count for _, count in self._shapes[number])

    def _rooms(self, key: str, shapes: Shapes) -> dict[str, Room]:
        slots = [self._slots_of(key, shape) for shape, _ in shapes]
        needed = [count for _, count in shapes]
        found = {}
        for value in slots[0]:
            have = [each[value] for each in slots]
            found[value] = Room(all(map(int.__ge__, have, needed)), sum(have))
        return found

    def _slots_of(self, key: str, shape: PodShape) -> dict[str, int]:
        """By value, how many pods of a shape fit on its nodes."""
        kind = shape_kind(shape)
        found = self._slots.get((key, kind))
        if found is not None:
            return found
        found = self._slots[key, kind] = {}
        pod_class, free = PodClass(0, shape, self._index), self._view.free
        self.work += len(self._index.ids)
        for i in self._index.ids.values():
            if not (value := self._index.node(i).labels.get(key)):
                continue
            count = pod_class.slots(free[i])
            count = count if count and pod_class.eligible(i) else 0
            found[value] = found.get(value, 0) + count
            if count and shape.fabric:
                self._hosts.setdefault((key, value), set()).add(i)
        return found


def shape_kind(shape: PodShape) -> Hashable:
    """Equal for shapes that differ at most in their partitions."""
    return shape_key(replace(shape, partitions=()))


def shapes_to_place(gang: Unit) -> dict[int, Shapes]:
    """By partition, the shapes of pods of the minimum without a node."""
    counts: dict[int, Counter[int]] = {}
    shapes: dict[int, PodShape] = {}

    def collect(unit: Unit) -> None:
        for pod in unit.pods:
            if not pod.node and not pod.extra:
                shapes[id(pod.shape)] = pod.shape
                for number in pod.shape.partitions:
                    counts.setdefault(number, Counter())[id(pod.shape)] += 1
        for part in unit.parts:
            collect(part)

    collect(gang)
    return {
        number: [(shapes[each], count) for each, count in counts[number].items()] for number in sorted(counts)
    }
