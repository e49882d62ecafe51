"""A gang in the form that the solver works on: units with levels as positions, and pods of equal shape as one
class with a count."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from grove.topology.placement.eligibility import names_nodes, rejection, selector_keys
from grove.topology.placement.index import ClusterIndex, Vector
from grove.topology.placement.model import Domain, Partition, Pod, PodShape, Unit


class PodClass:
    """Pods of equal shape: on which nodes they may run, and how many fit."""

    def __init__(
        self, number: int, shape: PodShape, index: ClusterIndex, confined: Sequence[int] | None = None
    ) -> None:
        self.number, self.shape, self._index = number, shape, index
        self.confined = confined
        """The only nodes that may admit these pods; None: not known without a look at each."""
        pairs = index.request(shape.requests, shape.fabric)
        self.missing = pairs if isinstance(pairs, str) else ""
        """A resource that no node has."""
        self.pairs: tuple[tuple[int, int], ...] = () if isinstance(pairs, str) else pairs
        self.accelerated = any(index.extended[d] for d, _ in self.pairs)
        """Whether a pod makes every node busy that it runs on."""
        self.keys = tuple(sorted(selector_keys(shape)))
        self.by_name = names_nodes(shape)
        self._eligible: dict[object, bool] = {}
        self.known_slots: dict[Vector, int] = {}
        """What `slots` found, for loops over many nodes."""

    def eligible(self, i: int) -> bool:
        """Whether node i admits these pods. Nodes that do not differ in what matters share the answer."""
        key: object = self._index.profiles[i]
        if self.by_name:
            key = i
        elif self.keys:
            labels = self._index.node(i).labels
            key = (key, *(labels.get(name) for name in self.keys))
        found = self._eligible.get(key)
        if found is None:
            admitted = not self.missing and rejection(self.shape, self._index.node(i)) is None
            found = self._eligible[key] = admitted
        return found

    def slots(self, free: Vector) -> int:
        """How many of these pods fit into what is free on one node."""
        found = self.known_slots.get(free)
        if found is None:
            count = min((free[d] // amount for d, amount in self.pairs), default=sys.maxsize)
            found = self.known_slots[free] = max(0, count)
        return found

    def makes_busy(self, i: int) -> bool:
        return self.accelerated or self._index.plain[i]


class Load:
    """The pods of one class in one unit."""

    def __init__(self, pod_class: PodClass, unit: PlacementUnit) -> None:
        self.pod_class, self.unit = pod_class, unit
        self.pods: list[str] = []
        self.extra: list[str] = []
        self.extra_class: PodClass | None = None
        """The class of extra pods for which there is no room otherwise; None: they stay without a node."""

    @property
    def count(self) -> int:
        return len(self.pods)


class PlacementUnit:
    """A unit of the gang, with sums over all of it."""

    def __init__(self, unit: Unit, outer: PlacementUnit | None, compiler: Compiler) -> None:
        index = compiler.index
        self.name, self.outer = unit.name, outer
        self.unknown_level = unit.required if unit.required and unit.required not in index.levels else ""
        self.required = _level(index, unit.required)
        self.preferred = _level(index, unit.preferred)
        self.bound: list[int] = []
        """Nodes of pods that are bound already, of the minimum."""
        self.bound_pods: dict[str, str] = {}
        self.loads: list[Load] = []
        self._add_pods(unit.pods, compiler)
        self.parts = [PlacementUnit(part, self, compiler) for part in unit.parts]
        totals: Counter[PodClass] = Counter()
        for load in self.loads:
            totals[load.pod_class] += load.count
        for part in self.parts:
            totals.update(part.totals)
            self.bound += part.bound
        self.totals: Counter[PodClass] = Counter(
            {each: totals[each] for each in sorted(totals, key=_hardest) if totals[each]}
        )
        """By class, the pods of the minimum that are to be placed: those that ask for most first."""
        self.pods = sum(self.totals.values()) + len(self.bound)
        self.needs: Counter[int] = Counter()
        for pod_class, count in self.totals.items():
            for d, amount in pod_class.pairs:
                self.needs[d] += amount * count
        self.allowed = self._domains_of_bound_pods(index)
        self.kind = compiler.kind_of(self)
        copies = Counter(part.kind for part in self.parts)
        examples = {part.kind: part for part in self.parts}
        kinds = [(part, copies[kind]) for kind, part in examples.items()]
        self.kinds_of_parts = sorted(kinds, key=lambda each: each[0].required is None)
        """Interchangeable parts: one of them, and how many there are; those with a required level first."""

    def walk(self) -> Iterator[PlacementUnit]:
        yield self
        for part in self.parts:
            yield from part.walk()

    def allows(self, domain: Domain) -> bool:
        """Whether pods that are bound already allow a domain of the required level."""
        return self.allowed is None or domain in self.allowed

    def satisfied_by(self, domain: Domain) -> bool:
        """Whether everything inside of a domain is in one domain of the required level, too."""
        if self.required is None:
            return not self.unknown_level
        outer = domain[: self.required + 1]
        return self.required < len(domain) and bool(outer[-1]) and self.allows(outer)

    def _add_pods(self, pods: tuple[Pod, ...], compiler: Compiler) -> None:
        loads: dict[PodClass, Load] = {}
        for pod in pods:
            if pod.node:
                self.bound_pods[pod.name] = pod.node
                if pod.node in compiler.index.ids and not pod.extra:
                    self.bound.append(compiler.index.ids[pod.node])
                continue
            pod_class = compiler.class_of(pod.shape)
            load = loads.get(pod_class)
            if load is None:
                load = loads[pod_class] = Load(pod_class, self)
            (load.extra if pod.extra else load.pods).append(pod.name)
            if pod.extra and pod.shape.partitions and load.extra_class is None:
                load.extra_class = compiler.class_of_extra(pod.shape)
        self.loads = list(loads.values())

    def _domains_of_bound_pods(self, index: ClusterIndex) -> frozenset[Domain] | None:
        """Where the required level allows this unit, since pods of it are bound; None for anywhere."""
        if self.required is None:
            return None
        found = (index.domain_at(i, self.required) for i in self.bound)
        return frozenset(domain for domain in found if domain is not None) or None


class Compiler:
    """Makes units, with one class for all pods of equal shape."""

    def __init__(
        self,
        index: ClusterIndex,
        partitions: tuple[Partition, ...] = (),
        values: tuple[str, ...] = (),
        labelled: Mapping[tuple[str, str], Sequence[int]] | None = None,
    ) -> None:
        """`values`: by partition, the value of its label; empty for any node. `labelled`: by label and value,
        the nodes that have it."""
        self.index = index
        self.classes: list[PodClass] = []
        self._partitions, self._values, self._labelled = partitions, values, labelled or {}
        self._by_object: dict[int, PodClass] = {}
        self._by_shape: dict[object, PodClass] = {}
        self._kinds: dict[object, int] = {}

    def compile(self, unit: Unit) -> PlacementUnit:
        return PlacementUnit(unit, None, self)

    def class_of(self, shape: PodShape) -> PodClass:
        """The class of pods of a shape. Shapes in different partitions share it if these have the same value,
        or none."""
        found = self._by_object.get(id(shape))
        if found is None:
            loose = self._shape_of_extra(shape)
            found = self._by_object[id(shape)] = self._class(self._in_partitions(shape), loose)
        return found

    def kind_of(self, unit: PlacementUnit) -> int:
        """A number that interchangeable units share."""
        loads = tuple(sorted((load.pod_class.number, load.count) for load in unit.loads))
        parts = tuple(sorted(part.kind for part in unit.parts))
        key = (unit.required, unit.preferred, unit.unknown_level, loads, parts, tuple(unit.bound))
        return self._kinds.setdefault(key, len(self._kinds))

    def class_of_extra(self, shape: PodShape) -> PodClass | None:
        """The class of pods beyond the minimum for which their partitions have no room: those that are only
        preferred may be left. None if there are none."""
        loose = self._shape_of_extra(shape)
        return None if loose is None else self._class(loose)

    def _class(self, shape: PodShape, loose: PodShape | None = None) -> PodClass:
        key = shape_key(shape), None if loose is None else shape_key(loose)
        found = self._by_shape.get(key)
        if found is None:
            found = self._by_shape[key] = PodClass(
                len(self.classes), shape, self.index, self._confined(shape)
            )
            self.classes.append(found)
        return found

    def _confined(self, shape: PodShape) -> Sequence[int] | None:
        known = (self._labelled.get(each) for each in shape.node_selector.items())
        return min((each for each in known if each is not None), key=len, default=None)

    def _shape_of_extra(self, shape: PodShape) -> PodShape | None:
        """The shape of pods beyond the minimum that leave preferred partitions; None if there are none."""
        if not self._values:
            return None
        preferred = [each for each in shape.partitions if not self._partitions[each].required]
        if not any(self._values[each] for each in preferred):
            return None
        required = tuple(each for each in shape.partitions if each not in preferred)
        return self._in_partitions(replace(shape, partitions=required))

    def _in_partitions(self, shape: PodShape) -> PodShape:
        """The shape with the values of its partitions as a part of its node selector."""
        if not shape.partitions:
            return shape
        selector = {
            self._partitions[each].key: value
            for each in (shape.partitions if self._values else ())
            if (value := self._values[each])
        }
        own = shape.node_selector
        if any(own.get(key, value) != value for key, value in selector.items()):
            return replace(shape, affinity=(), partitions=())  # no node has both values
        return replace(shape, node_selector={**own, **selector}, partitions=())


def _hardest(pod_class: PodClass) -> tuple[object, ...]:
    """Pods with many accelerators first: where something does not fit, they show it first."""
    return (not pod_class.accelerated, [-amount for _, amount in pod_class.pairs], pod_class.number)


def _level(index: ClusterIndex, key: str) -> int | None:
    return index.levels.index(key) if key in index.levels else None


def shape_key(shape: PodShape) -> Hashable:
    """Equal for equal shapes."""
    return (
        _items(shape.requests),
        _items(shape.node_selector),
        shape.affinity,
        shape.tolerations,
        shape.fabric,
        shape.partitions,
    )


def _items(mapping: Mapping[str, object]) -> frozenset[tuple[str, object]]:
    return frozenset(mapping.items())
