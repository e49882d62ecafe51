"""Whether a gang needs no nominations: its domains have room for all pods that could get in its way.

The test may only err on the side of nominations. So every such pod counts as large as the largest of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grove.plan.placement.demand import walk
from grove.topology.placement.answers import Placed
from grove.topology.placement.eligibility import rejection
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Amounts, Domain, PodShape, Unit


def has_slack(index: ClusterIndex, unit: Unit, answer: Placed, in_flight: Sequence[Amounts]) -> bool:
    """Whether each domain of the gang, whose pods are reserved in the index, still has room for all pods in
    flight and once more for the pods of the gang."""
    return all(
        _has_room(index, domain, _shapes(each), _size(each) + len(in_flight), in_flight)
        for each, domain in _domains(unit, answer)
    )


def _domains(unit: Unit, answer: Placed) -> Iterator[tuple[Unit, Domain]]:
    """The units that must stay in one domain; the whole gang, if there is none."""
    found = [(each, answer.domains[each.name]) for each in walk(unit) if each.required]
    return iter(found or [(unit, CLUSTER)])


def _has_room(
    index: ClusterIndex, domain: Domain, shapes: list[PodShape], count: int, in_flight: Sequence[Amounts]
) -> bool:
    largest: dict[int, int] = {}
    for amounts in (*(shape.requests for shape in shapes), *in_flight):
        for resource, amount in amounts.items():
            if not amount:
                continue
            if (position := index.dims.get(resource)) is None:
                return False
            largest[position] = max(largest.get(position, 0), amount)
    for node in index.members.get(domain, ()):
        if any(rejection(shape, index.node(node)) for shape in shapes):
            continue
        free = index.actual.free[node]
        count -= max(0, min((free[i] if i < len(free) else 0) // amount for i, amount in largest.items()))
        if count <= 0:
            return True
    return False


def _shapes(unit: Unit) -> list[PodShape]:
    return list({id(pod.shape): pod.shape for each in walk(unit) for pod in each.pods}.values())


def _size(unit: Unit) -> int:
    return sum(not pod.node for each in walk(unit) for pod in each.pods)
