"""The input of planning a fabric domain. Data only."""

from __future__ import annotations

from msgspec import Struct

from grove.api.types.pod import Pod
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.domain_pods import NO_PODS, DomainPods
from grove.fabrics.membership import DomainMembership
from grove.fabrics.provider import Domain, FabricDomainProvider
from grove.fabrics.resolved import DomainState


class DomainConsumer(Struct, frozen=True):
    """A set that needs the domain."""

    workload: PodCliqueSet
    membership: DomainMembership
    state: DomainState


class ChannelHolder(Struct, frozen=True):
    """A domain that has nodes."""

    namespace: str
    name: str
    owners: tuple[str, ...]
    """The sets that own it."""
    nodes: tuple[str, ...]


class DomainSnapshot(Struct, frozen=True):
    """A domain by name: the existing object, and the sets that need it."""

    provider: FabricDomainProvider
    namespace: str
    name: str
    found: Domain | None = None
    consumers: tuple[DomainConsumer, ...] = ()
    former_owners: tuple[PodCliqueSet, ...] = ()
    """Sets that are not terminating, are owners of it, and no longer need it."""
    counts: tuple[PodCliqueScalingGroup, ...] = ()
    """Groups of those sets whose replicas have domains of their own."""
    unknown_owner: bool = False
    """Whether it has an owner set that is not known: deleted, or not in the cache yet."""
    in_use: bool = False
    """Whether pods have claims of it."""
    pods: DomainPods = NO_PODS
    channels: int | None = None
    """How many pods of the whole cluster can be in domains of the vendor at once; None if not known."""
    members: int = 0
    """How many pods it has, without those that terminate."""
    unschedulable: tuple[float, ...] = ()
    """Since when pods of it have been unschedulable."""
    holders: tuple[ChannelHolder, ...] = ()
    """If there are such pods: the other domains that have nodes."""
    restarted: tuple[Pod, ...] = ()
    """If the domain was deleted and is to be created again: the pods that have claims of it."""
