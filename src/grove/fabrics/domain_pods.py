"""What the pods of a fabric domain say about it. Data only."""

from __future__ import annotations

from msgspec import Struct


class HeldNode(Struct, frozen=True, gc=False):
    """A node with a pod of the domain, which the driver has put into another domain."""

    name: str
    since: float
    """Since when the pod has been on it."""


class DomainPods(Struct, frozen=True):
    """The pods of a domain. Those that terminate do not count."""

    nodes: frozenset[str] = frozenset()
    """The nodes that they are on: each of them should be in the domain."""
    started: frozenset[str] = frozenset()
    """Those of the nodes on which a pod has started: they were ready in the domain."""
    former: tuple[str, ...] = ()
    """Those that are older than the domain: their claims are for another one, which had its name."""
    partitions: frozenset[str] = frozenset()
    """The partitions of those nodes that the domain does not list, by their labels."""
    held: tuple[HeldNode, ...] = ()
    """The nodes that another domain holds, by their labels."""


NO_PODS = DomainPods()


class DomainPodCount(Struct, frozen=True, gc=False):
    """The pods of a replica or a set that are to be in a domain, without those of sets that share it."""

    vendor: str
    name: str
    """The name of the domain."""
    wanted: int
    scheduled: int
    """How many of them exist and have a node."""
