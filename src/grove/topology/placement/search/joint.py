"""Room that pods of several classes compete for, counted in pods of one of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from grove.topology.placement.index import ClusterIndex, Vector
from grove.topology.placement.model import FABRIC_POD, PODS
from grove.topology.placement.units import PlacementUnit, PodClass


class JointClass:
    """Pods of a class and of all classes that ask for at least as much.

    Where such a larger pod runs, `weights` pods of the class could run instead, as far as CPU, memory and
    accelerators are concerned. So all of them together take at least the sum of the weights from the room
    for pods of the class, on all nodes that admit any of them.
    """

    def __init__(self, number: int, weights: dict[PodClass, int], pairs: tuple[tuple[int, int], ...]) -> None:
        self.number, self.weights, self._pairs = number, weights, pairs
        self.known_slots: dict[Vector, int] = {}

    def eligible(self, i: int) -> bool:
        return any(each.eligible(i) for each in self.weights)

    def slots(self, free: Vector) -> int:
        found = self.known_slots.get(free)
        if found is None:
            count = min((free[d] // amount for d, amount in self._pairs), default=sys.maxsize)
            found = self.known_slots[free] = max(0, count)
        return found

    def need(self, unit: PlacementUnit) -> int:
        """How much of the room a unit takes at least."""
        return sum(self.weights.get(each, 0) * count for each, count in unit.totals.items())


def joint_classes(index: ClusterIndex, classes: Iterable[PodClass]) -> list[JointClass]:
    """For each class to which others can be compared. The numbers continue those of the classes."""
    known = list(classes)
    # Each pod counts as one pod, however large it is: with these a larger pod would replace one other only.
    ones = {index.dims.get(PODS), index.dims.get(FABRIC_POD)}
    found: list[JointClass] = []
    for pod_class in known:
        pairs = tuple((d, amount) for d, amount in pod_class.pairs if d not in ones)
        weights = {each: weight for each in known if (weight := _weight(each, pairs))}
        if pairs and len(weights) > 1:
            found.append(JointClass(len(known) + len(found), weights, pairs))
    return found


def _weight(pod_class: PodClass, pairs: tuple[tuple[int, int], ...]) -> int:
    """How many times the amounts are contained in the requests of a class."""
    requests = dict(pod_class.pairs)
    return min((requests.get(d, 0) // amount for d, amount in pairs), default=0)
