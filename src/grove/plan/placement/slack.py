"""Whether a gang needs no nominations: its domains have room for all pods that could get in its way.

The test may only err on the side of nominations. So every such pod counts as large as the largest of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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


def has_slack(index: ClusterIndex, unit: Unit, answer: Placed, in_flight: PodsInFlight) -> bool:
    """Whether each domain of the gang, whose pods are reserved in the index, still has room for all pods in
    flight and once more for the pods of the gang."""
    return all(_has_room(index, domain, each, in_flight) for each, domain in _domains(unit, answer))


def _domains(unit: Unit, answer: Placed) -> Iterator[tuple[Unit, Domain]]:
    """The units that must stay in one domain; the whole gang, if there is none."""
    found = [(each, answer.domains[each.name]) for each in walk(unit) if each.required]
    return iter(found or [(unit, CLUSTER)])


def _has_room(index: ClusterIndex, domain: Domain, unit: Unit, in_flight: PodsInFlight) -> bool:
    shapes = _shapes(unit)
    largest = _largest((*(shape.requests for shape in shapes), in_flight.largest))
    if not largest.keys() <= index.dims.keys():
        return False
    room = PodClass(0, PodShape(largest), index)
    classes = [PodClass(0, shape, index) for shape in shapes]
    count = _size(unit) + in_flight.count
    for i in index.members.get(domain, ()):
        slots = room.slots(index.actual.free[i])
        if (slots or not count) and all(each.eligible(i) for each in classes):
            count -= slots
            if count <= 0:
                return True
    return False


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


def _size(unit: Unit) -> int:
    return sum(not pod.node for each in walk(unit) for pod in each.pods)
