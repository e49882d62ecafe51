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

    def __init__(
        self,
        index: ClusterIndex,
        number: int,
        weights: dict[PodClass, int],
        pairs: tuple[tuple[int, int], ...],
    ) -> None:
        self._index, self.number, self.weights, self._pairs = index, number, weights, pairs
        self.known_slots: dict[Vector, int] = {}
        self.confined = None
        self._keys = tuple(sorted({key for each in weights for key in each.keys}))
        self._by_name = any(each.by_name for each in weights)
        self._eligible: dict[object, bool] = {}

    def eligible(self, i: int) -> bool:
        """Whether node i admits pods of one of the classes. Nodes that do not differ in what matters share
        the answer: with many classes it takes long."""
        if self._by_name:
            return any(each.eligible(i) for each in self.weights)
        labels = self._index.node(i).labels
        key = (self._index.profiles[i], *(labels.get(name) for name in self._keys))
        found = self._eligible.get(key)
        if found is None:
            found = self._eligible[key] = any(each.eligible(i) for each in self.weights)
        return found

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
    """For each class to which others can be compared, one for all that ask for the same. The numbers continue
    those of the classes."""
    known = list(classes)
    # Each pod counts as one pod, however large it is: with these a larger pod would replace one other only.
    ones = {index.dims.get(PODS), index.dims.get(FABRIC_POD)}
    found: list[JointClass] = []
    asked = (tuple((d, amount) for d, amount in each.pairs if d not in ones) for each in known)
    for pairs in dict.fromkeys(asked):
        weights = {each: weight for each in known if (weight := _weight(each, pairs))}
        if pairs and len(weights) > 1:
            found.append(JointClass(index, len(known) + len(found), weights, pairs))
    return found


def _weight(pod_class: PodClass, pairs: tuple[tuple[int, int], ...]) -> int:
    """How many times the amounts are contained in the requests of a class."""
    requests = dict(pod_class.pairs)
    return min((requests.get(d, 0) // amount for d, amount in pairs), default=0)
