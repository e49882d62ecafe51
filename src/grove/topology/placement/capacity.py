"""Free slots: how many jobs of k accelerators fit into the domains of each level as the cluster is now.

A job of k accelerators is a set of pods of equal size, as large as the nodes allow: k on one node if a node
of the domain has as many, otherwise as many on each node as the largest of its nodes has. So a slot of 16 on
nodes of 8 is two nodes with 8 free each, and free accelerators that are scattered over nodes are no slot. A
last, smaller pod takes what does not fill a node. CPU, memory, taints and selectors are not looked at, as
they depend on the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from grove import timing
from grove.topology.placement.membership import depth
from grove.topology.placement.model import Domain


class Accelerators(NamedTuple):
    """A node."""

    path: Domain
    """The values of all levels; empty from the first missing label on."""
    total: int
    free: int


def free_slots(
    nodes: Iterable[Accelerators], levels: int, sizes: Iterable[int] = timing.FREE_SLOT_SIZES
) -> tuple[Mapping[int, int], ...]:
    """For each level from broad to narrow: how many jobs of each size fit, each into one domain. Only nodes
    that belong to the topology count."""
    listed = list(nodes)
    deepest = depth([node.path for node in listed])
    by_level: list[dict[Domain, list[Accelerators]]] = [{} for _ in range(levels)]
    for node in listed:
        if deepest and node.path[deepest - 1] and node.total > 0:
            for level, domains in enumerate(by_level[:deepest]):
                domains.setdefault(node.path[: level + 1], []).append(node)
    wanted = tuple(sizes)
    return tuple(_slots(domains.values(), wanted) for domains in by_level)


def _slots(domains: Iterable[list[Accelerators]], sizes: tuple[int, ...]) -> Mapping[int, int]:
    """How many jobs of each size fit into domains, each into one of them."""
    found = [
        (max([node.total for node in members]), [node.free for node in members if node.free > 0])
        for members in domains
    ]
    return {size: sum([_jobs(largest, free, size) for largest, free in found]) for size in sizes}


def _jobs(largest: int, free: list[int], size: int) -> int:
    """How many jobs of a size fit: pods as large as the largest node, and one of the rest."""
    if size <= largest:
        return sum([amount // size for amount in free])
    full, rest = divmod(size, largest)
    whole = sum([amount // largest for amount in free])
    if not rest:
        return whole // full
    parts = sum((amount % largest) // rest for amount in free)
    # A node that is free as a whole can hold a full pod or the rest of several jobs.
    return max(
        jobs for jobs in range(whole // full + 1) if parts + (whole - jobs * full) * (largest // rest) >= jobs
    )
