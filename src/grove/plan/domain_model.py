"""What a fabric domain is planned from, and what comes of it. Data."""

from __future__ import annotations

from msgspec import Struct

from grove.api.events import EventReason
from grove.api.groups import PodCliqueScalingGroup
from grove.api.intents import Intent
from grove.api.meta import ObjectMeta
from grove.api.sets import PodCliqueSet
from grove.fabrics.places import Stay
from grove.fabrics.provider import Domain, FabricDomainProvider
from grove.plan.domain_states import State, template_state


class User(Struct, frozen=True):
    """A set that needs the domain."""

    workload: PodCliqueSet
    stay: Stay


class Holder(Struct, frozen=True):
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
    users: tuple[User, ...] = ()
    former: tuple[PodCliqueSet, ...] = ()
    """Sets that are there to stay, are named as its owners, and do not need it any more."""
    counts: tuple[PodCliqueScalingGroup, ...] = ()
    """Groups of those sets whose replicas have domains of their own."""
    strange: bool = False
    """Whether it names a set as its owner that we do not know: gone, or not seen yet."""
    occupied: bool = False
    """Whether pods claim from it."""
    template: ObjectMeta | None = None
    """The ResourceClaimTemplate of the name that is its, whoever made it."""

    unplaced: tuple[float, ...] = ()
    """Since when pods of it have found no node."""
    holders: tuple[Holder, ...] = ()
    """If there are such pods: the other domains that have nodes."""

    @property
    def template_state(self) -> State:
        """The state of the domain by its template."""
        if self.found is None:
            return State.USABLE
        return template_state(self.provider, self.found, self.template)


class Remark(Struct, frozen=True):
    """Something to tell a set about the domain, once; with an intent, when that is done."""

    workload: PodCliqueSet
    reason: EventReason
    note: str
    warning: bool = False
    intent: str = ""


class DomainPlan(Struct, frozen=True):
    """What to do about a domain, and what to tell whom."""

    intents: tuple[Intent, ...] = ()
    remarks: tuple[Remark, ...] = ()
    wake_at: float | None = None
