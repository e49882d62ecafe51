"""What `grove explain` says about an object. Data only; it is also what `-o json` prints."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from grove.reasons.codes import ReasonCode


class View(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of all parts."""


class ObjectRef(View, frozen=True):
    """An object."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class ReasonView(View, frozen=True):
    """A reason, as `grove.reasons.model.WaitReason` has it."""

    code: ReasonCode
    message: str
    remedy: str
    about: ObjectRef | None = None
    since: str = ""
    """Since when the object waits, which may have been for another reason at first; empty if not known."""


class DomainRow(View, frozen=True):
    """A domain that a gang might go to: its nodes, and how much of the resource that is short it has."""

    domain: str
    nodes: int
    eligible: int
    """Nodes that the pods may use."""
    unusable: Mapping[str, int] = {}
    """By reason, how many nodes the pods may not use."""
    resource: str = ""
    free: int = 0
    """On nodes that the pods may use."""
    total: int = 0
    need: int = 0
    room: int = 0
    """How many of the pods fit."""
    pods: int = 0
    """How many there are."""
    reserved: Mapping[str, int] = {}
    """By gang, as `namespace/name`, on how many nodes something is reserved for it or held."""

    @property
    def short(self) -> int:
        """How much of the resource is missing in total; 0 does not mean that all pods fit."""
        return max(0, self.need - self.free)


class Holder(View, frozen=True):
    """A pod that uses what a gang lacks."""

    pod: ObjectRef
    node: str
    resource: str
    amount: int
    priority: int = 0
    gang: str = ""
    """The gang of one of our pods."""


class Remedy(View, frozen=True):
    """A change after which the gang fits, as the solver finds."""

    action: str
    """`uncordon`, `repair`, `removeTaint`, `endPods`, `widenLevel` or `addNodes`."""
    text: str
    nodes: tuple[str, ...] = ()
    pods: tuple[ObjectRef, ...] = ()
    count: int = 0
    """Of nodes to add."""
    lower_priority: bool = False
    """Whether all pods that must end have a lower priority than the gang."""


class GangExplanation(View, frozen=True):
    """What a gang that waits for nodes asks for, where it might go, and what would help."""

    gang: str
    pods: int
    level: str = ""
    """The level whose domains it must fit into; empty: anywhere."""
    domains: tuple[DomainRow, ...] = ()
    """Those that come closest first."""
    more_domains: int = 0
    holders: tuple[Holder, ...] = ()
    more_holders: int = 0
    remedies: tuple[Remedy, ...] = ()


class ContainerView(View, frozen=True):
    """A container that does not run, or has ended before."""

    pod: str
    container: str
    state: str
    message: str = ""
    restarts: int = 0


class EventView(View, frozen=True):
    """An event about the object or what belongs to it."""

    time: str
    age_seconds: int | None
    type: str
    reason: str
    about: ObjectRef
    message: str
    count: int = 1
    name: str = ""
    """Of the event itself."""


class Explanation(View, frozen=True):
    """Everything about one object."""

    about: ObjectRef
    state: str
    waits: bool
    reasons: tuple[ReasonView, ...] = ()
    gangs: tuple[GangExplanation, ...] = ()
    containers: tuple[ContainerView, ...] = ()
    events: tuple[EventView, ...] = ()
    more: Mapping[str, int] = {}
    """How many reasons, gangs, containers and events were left out."""
