"""Free slots: how many jobs of k accelerators fit into the domains of each level as the cluster is now.

A job of k accelerators is a set of pods of equal size, as large as the nodes allow: k on one node if a node
of the domain has as many, otherwise as many on each node as the largest of its nodes has. So a slot of 16 on
nodes of 8 is two nodes with 8 free each, and free accelerators that are scattered over nodes are no slot. A
last, smaller pod takes what does not fill a node. CPU, memory, taints and selectors are not looked at, as
they depend on the job.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Node


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


def _slots(index: ClusterIndex, resource: str, level: int, sizes: tuple[int, ...]) -> dict[int, int]:
    d = index.dims.get(resource)
    if d is None:
        return dict.fromkeys(sizes, 0)
    found = dict.fromkeys(sizes, 0)
    for domain in index.subdomains(CLUSTER, level):
        usable = [i for i in index.members[domain] if _usable(index.node(i))]
        largest = max((index.empty.free[i][d] for i in usable), default=0)
        if largest > 0:
            free = [index.actual.free[i][d] for i in usable]
            for size in sizes:
                found[size] += _jobs(free, size, largest)
    return found


def _jobs(free: list[int], size: int, largest: int) -> int:
    """How many jobs of a size fit: pods of at most `largest`, and one of the rest."""
    if size <= largest:
        return sum(amount // size for amount in free if amount > 0)
    full, rest = divmod(size, largest)
    whole = sum(amount // largest for amount in free if amount > 0)
    if not rest:
        return whole // full
    parts = sum((amount % largest) // rest for amount in free if amount > 0)
    # A node that is free as a whole can hold a full pod or the rest of several jobs.
    return max(
        jobs for jobs in range(whole // full + 1) if parts + (whole - jobs * full) * (largest // rest) >= jobs
    )


def _usable(node: Node) -> bool:
    return node.ready and not node.unschedulable
