"""What a fabric domain is planned from, and what comes of it. Data."""

from __future__ import annotations

from msgspec import Struct

from grove.api.event_reasons import EventReason
from grove.api.intents import Intent
from grove.api.meta import ObjectMeta
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.membership import DomainMembership
from grove.fabrics.provider import Domain, FabricDomainProvider
from grove.plan.fabric.state import DomainState, template_state


class DomainConsumer(Struct, frozen=True):
    """A set that needs the domain."""

    workload: PodCliqueSet
    membership: DomainMembership


class ChannelHolder(Struct, frozen=True):
    """A domain that has nodes."""

    namespace: str
    name: str
    owners: tuple[str, ...]
    """The sets that it is for."""
    nodes: tuple[str, ...]


class DomainSnapshot(Struct, frozen=True):
    """One name: what is there, and who needs it."""

    provider: FabricDomainProvider
    namespace: str
    name: str
    found: Domain | None = None
    consumers: tuple[DomainConsumer, ...] = ()
    former_owners: tuple[PodCliqueSet, ...] = ()
    """Sets that are there to stay, are named as its owners, and do not need it any more."""
    counts: tuple[PodCliqueScalingGroup, ...] = ()
    """Groups of those sets whose replicas have domains of their own."""
    unknown_owner: bool = False
    """Whether it names a set as its owner that we do not know: gone, or not seen yet."""
    in_use: bool = False
    """Whether pods claim from it."""
    template: ObjectMeta | None = None
    """The ResourceClaimTemplate of the name that is its, whoever made it."""

    unschedulable: tuple[float, ...] = ()
    """Since when pods of it have found no node."""
    holders: tuple[ChannelHolder, ...] = ()
    """If there are such pods: the other domains that have nodes."""

    @property
    def template_state(self) -> DomainState:
        """The state of the domain by its template."""
        if self.found is None:
            return DomainState.USABLE
        return template_state(self.provider, self.found, self.template)


class DomainEvent(Struct, frozen=True):
    """Something to tell a set about the domain, once; with an intent, when that is done."""

    workload: PodCliqueSet
    reason: EventReason
    note: str
    warning: bool = False
    intent: str = ""


class DomainPlan(Struct, frozen=True):
    """What to do about a domain, and what to tell whom."""

    intents: tuple[Intent, ...] = ()
    events: tuple[DomainEvent, ...] = ()
    requeue_at: float | None = None
