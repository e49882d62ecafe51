"""Free slots: how many jobs of k accelerators fit into the domains of each level as the cluster is now."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Domain


class FreeSlots(Struct, frozen=True):
    """Of one level: how many jobs of each size fit, each into one domain."""

    level: str
    slots: dict[int, int]


def free_slots(index: ClusterIndex, resource: str, sizes: Iterable[int]) -> tuple[FreeSlots, ...]:
    """For each level from broad to narrow. Cordoned and unready nodes have no free accelerators."""
    wanted = tuple(sizes)
    return tuple(
        FreeSlots(key, _slots(index, resource, level, wanted)) for level, key in enumerate(index.levels)
    )


def domain_free(index: ClusterIndex, resource: str, domain: Domain) -> int:
    """The free accelerators of a domain."""
    d = index.dims.get(resource)
    if d is None:
        return 0
    free, total = index.actual.free, 0
    for i in index.members.get(domain, ()):
        node = index.node(i)
        if node.ready and not node.unschedulable and free[i][d] > 0:
            total += free[i][d]
    return total


def _slots(index: ClusterIndex, resource: str, level: int, sizes: tuple[int, ...]) -> dict[int, int]:
    free = [domain_free(index, resource, domain) for domain in index.subdomains(CLUSTER, level)]
    return {size: sum(amount // size for amount in free) for size in sizes}
