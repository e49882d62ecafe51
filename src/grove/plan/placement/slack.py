"""Whether a gang needs no nominations: its domains have room for all pods that could get in its way.

The test may only err on the side of nominations. So every such pod counts as large as the largest of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from grove.plan.placement.demand import walk
from grove.topology.placement.answers import Placed
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Amounts, Domain, PodShape, Unit
from grove.topology.placement.units import PodClass


class PodsInFlight(Struct, frozen=True):
    """The pods that the scheduler may bind at any moment: how many, and the most that one of them requests of
    each resource. There may be thousands, and each gang is compared with them."""

    count: int = 0
    largest: Amounts = {}


def pods_in_flight(requests: Iterable[Amounts]) -> PodsInFlight:
    """The pods with these requests."""
    listed = list(requests)
    return PodsInFlight(len(listed), _largest(listed))


def has_slack(
    index: ClusterIndex,
    unit: Unit,
    answer: Placed,
    in_flight: PodsInFlight,
    partition_keys: Collection[str] = (),
) -> bool:
    """Whether each domain of the gang, whose pods are reserved in the index, still has room for all pods in
    flight and once more for the pods of the gang. Pods with a label of partitions in their node selector need
    that room on the nodes that have it."""
    return all(
        _has_room(index, domain, each, in_flight, partition_keys)
        for each, domain in _domains(unit, answer, bool(partition_keys))
    )


def _domains(unit: Unit, answer: Placed, in_partitions: bool) -> Iterator[tuple[Unit, Domain]]:
    """The units that must stay in one domain; the whole gang, if there is none, or if pods of any unit must
    stay in a partition."""
    found = [(each, answer.domains[each.name]) for each in walk(unit) if each.required]
    return iter(found if found and not in_partitions else [*found, (unit, CLUSTER)])


def _has_room(
    index: ClusterIndex, domain: Domain, unit: Unit, in_flight: PodsInFlight, partition_keys: Collection[str]
) -> bool:
    shapes = _shapes(unit)
    largest = _largest((*(shape.requests for shape in shapes), in_flight.largest))
    if not largest.keys() <= index.dims.keys():
        return False
    groups: dict[_Labels, list[PodShape]] = {}
    for shape in shapes:
        groups.setdefault(_labels(shape, partition_keys), []).append(shape)
    sizes = _sizes(unit, partition_keys)
    for labels, group in groups.items():
        rivals = sum(size for other, size in sizes.items() if not _exclude(labels, other))
        # A node has room for one pod of a fabric domain, whatever else is free on it.
        room = PodShape(largest, fabric=bool(labels) and any(shape.fabric for shape in group))
        if not _fit(index, domain, group, room, rivals + in_flight.count):
            return False
    return True


def _fit(index: ClusterIndex, domain: Domain, shapes: Iterable[PodShape], room: PodShape, count: int) -> bool:
    """Whether so many pods fit on the nodes of a domain that admit all of the shapes."""
    largest, classes = PodClass(0, room, index), [PodClass(0, shape, index) for shape in shapes]
    for i in index.members.get(domain, ()):
        slots = largest.slots(index.actual.free[i])
        if (slots or not count) and all(each.eligible(i) for each in classes):
            count -= slots
            if count <= 0:
                return True
    return False


_Labels = frozenset[tuple[str, str]]


def _labels(shape: PodShape, keys: Collection[str]) -> _Labels:
    """The labels of partitions in a node selector."""
    return frozenset((key, shape.node_selector[key]) for key in keys if key in shape.node_selector)


def _exclude(labels: _Labels, others: _Labels) -> bool:
    """Whether no node has both: two values of one label."""
    wanted = dict(labels)
    return any(wanted.get(key, value) != value for key, value in others)


def _largest(requests: Iterable[Amounts]) -> Mapping[str, int]:
    """The largest amount of each resource; zeros are left out."""
    largest: dict[str, int] = {}
    for amounts in requests:
        for resource, amount in amounts.items():
            if amount > largest.get(resource, 0):
                largest[resource] = amount
    return largest


def _shapes(unit: Unit) -> list[PodShape]:
    return list({id(pod.shape): pod.shape for each in walk(unit) for pod in each.pods}.values())


def _sizes(unit: Unit, keys: Collection[str]) -> Counter[_Labels]:
    """By labels of partitions, how many pods are to be placed."""
    return Counter(_labels(pod.shape, keys) for each in walk(unit) for pod in each.pods if not pod.node)
