"""The labels of nodes that the pods of a gang are pinned to, or prefer: of domains and partitions that the
solver has chosen, and those that were recorded before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from itertools import chain

from msgspec.structs import replace

from grove.plan.placement.assignment import Pins
from grove.plan.placement.demand import Demand, pinned_shape, pod_name, walk
from grove.topology.placement.answers import Placed
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Domain, PodShape, Unit


def with_existing_pins(index: ClusterIndex, demand: Demand) -> Demand:
    """The demand without pins to domains and partitions that are gone, such as a rack that was renamed: no
    node could fulfil them. The bound pods keep the gang where it is."""
    bound = [index.node(index.ids[pod.node]).labels for pod in demand.pods if pod.node in index.ids]
    if not bound or not demand.pinned:
        return demand
    partitions = {each.key: {labels.get(each.key, "") for labels in bound} for each in demand.domains}
    pinned = {clique: _existing(index, pins, partitions) for clique, pins in demand.pinned.items()}
    return demand if pinned == demand.pinned else replace(demand, pinned=pinned)


def _existing(index: ClusterIndex, pins: Pins, partitions: Mapping[str, Set[str]]) -> Pins:
    """The pins that a node can fulfil. `partitions`: by label, the values of nodes with pods of the gang."""
    depth = max((index.levels.index(key) + 1 for key in pins if key in index.levels), default=0)
    domain = tuple(pins.get(key, "") for key in index.levels[:depth])
    gone = () if domain in index.members else index.levels
    return {
        key: value for key, value in pins.items() if key not in gone and value in partitions.get(key, {value})
    }


def pinned_unit(unit: Unit, pins: Mapping[str, Pins]) -> Unit:
    """The gang with its pins as part of the node selectors of its pods."""
    return with_shapes(
        unit, {clique: partial(pinned_shape, pins=each) for clique, each in pins.items() if each}
    )


def with_shapes(unit: Unit, changes: Mapping[str, Callable[[PodShape], PodShape]]) -> Unit:
    """The gang with other shapes of the pods of these cliques; pods that share a shape share the other."""
    if not changes:
        return unit
    pods = unit.pods
    if change := changes.get(unit.name):
        shapes = {id(pod.shape): pod.shape for pod in pods}
        changed = {known: change(shape) for known, shape in shapes.items()}
        pods = tuple(replace(pod, shape=changed[id(pod.shape)]) for pod in pods)
    return replace(unit, pods=pods, parts=tuple(with_shapes(part, changes) for part in unit.parts))


def kept_pins(unit: Unit, demand: Demand) -> dict[str, Pins]:
    """The pins without those of units and fabric domains none of whose pods was released: they may go
    elsewhere."""
    released = {pod_name(pod.slot) for pod in demand.pods if not pod.gated}
    partitions = {
        number
        for part in walk(demand.unit)
        for pod in part.pods
        if pod.name in released
        for number in pod.shape.partitions
    }
    with_released = {
        part.name
        for part in walk(demand.unit)
        if any(pod.name in released for each in walk(part) for pod in each.pods)
    }
    kept: dict[str, Pins] = {}

    def keep(part: Unit, levels: tuple[str, ...]) -> None:
        if part.name in with_released and part.required in demand.levels:
            levels = max(levels, demand.levels[: demand.levels.index(part.required) + 1], key=len)
        recorded = demand.pinned.get(part.name, {})
        numbers = partitions.intersection(part.pods[0].shape.partitions if part.pods else ())
        kept_keys = {*levels, *(demand.domains[number].key for number in numbers)}
        if pins := {key: value for key, value in recorded.items() if key in kept_keys}:
            kept[part.name] = pins
        for each in part.parts:
            keep(each, levels)

    keep(unit, ())
    return kept


def pinned_domain(index: ClusterIndex, unit: Unit, pins: Mapping[str, Pins]) -> Domain | None:
    """The domain that a gang as a whole is pinned to."""
    if unit.required not in index.levels or not pins:
        return None
    of_clique = next(iter(pins.values()))
    return tuple(of_clique.get(key, "") for key in index.levels[: index.levels.index(unit.required) + 1])


def domain_pins(
    index: ClusterIndex, unit: Unit, answer: Placed, outer: Domain = ()
) -> Iterator[tuple[str, Pins]]:
    """By clique, the labels of the narrowest required domain that it is in, and of all domains around it."""
    domain = answer.domains[unit.name] if unit.required else outer
    domain = domain if len(domain) > len(outer) else outer
    if unit.pods and domain:
        yield unit.name, {key: value for key, value in zip(index.levels, domain, strict=False) if value}
    for part in unit.parts:
        yield from domain_pins(index, part, answer, domain)


def partition_labels(
    unit: Unit, demand: Demand, answer: Placed, *, required: bool
) -> Iterator[tuple[str, Pins]]:
    """By clique, the labels of the partitions that its pods share: of those that are required, or of those
    that are preferred."""
    for part in walk(unit):
        found = {
            demand.domains[number].key: answer.partitions[number]
            for number in (part.pods[0].shape.partitions if part.pods and answer.partitions else ())
            if demand.domains[number].required is required and answer.partitions[number]
        }
        if found:
            yield part.name, found


def partition_pins(
    index: ClusterIndex, unit: Unit, demand: Demand, answer: Placed, *, with_preferred: bool
) -> dict[str, Pins]:
    """By clique, the labels of partitions that its pods are pinned to. The scheduler weighs a preference
    against others, and would split a domain: so a preferred partition with slack is a pin, too, for the
    pods of a gang that starts."""
    required = partition_labels(unit, demand, answer, required=True)
    if not with_preferred:
        return merged(required)
    nodes = {
        part.name: {answer.nodes.get(pod.name, "") for pod in part.pods if not pod.node}
        for part in walk(unit)
    }
    preferred = (
        (clique, {key: value for key, value in labels.items() if _have(index, nodes[clique], key, value)})
        for clique, labels in partition_labels(unit, demand, answer, required=False)
    )
    return merged(required, preferred)


def _have(index: ClusterIndex, nodes: Iterable[str], key: str, value: str) -> bool:
    """Whether all of these nodes have a label; pods beyond the minimum may be elsewhere."""
    known = (index.ids.get(node) for node in nodes if node)
    return all(i is not None and index.node(i).labels.get(key) == value for i in known)


def merged(*labels: Iterable[tuple[str, Pins]]) -> dict[str, Pins]:
    """The labels of each clique."""
    merged: dict[str, Pins] = {}
    for clique, pins in chain.from_iterable(labels):
        merged[clique] = {**merged.get(clique, {}), **pins}
    return merged


def preferred_labels(
    index: ClusterIndex, unit: Unit, answer: Placed, outer: Pins | None = None
) -> Iterator[tuple[str, Pins]]:
    """By clique, the label of the preferred level of each unit around it: its value on most of the nodes of
    that unit."""
    near = dict(outer or {})
    if unit.preferred in index.levels:
        level = index.levels.index(unit.preferred)
        values = Counter(
            index.paths[i][level]
            for each in walk(unit)
            for pod in each.pods
            if (i := index.ids.get(answer.nodes.get(pod.name, ""))) is not None
        )
        if common := next((value for value, _ in values.most_common() if value), ""):
            near[unit.preferred] = common
    if unit.pods and near:
        yield unit.name, near
    for part in unit.parts:
        yield from preferred_labels(index, part, answer, near)
