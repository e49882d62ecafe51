"""What a scheduler backend is: one small Protocol, and another for those that know topologies.

Backends return objects as they should be. Who writes, watches, compares and repairs them is the core: a
backend never sees a client, and one that raises costs only its own users.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from grove.api.events import EventReason
from grove.api.intents import Intent
from grove.api.kind import ForeignKind as ForeignKind
from grove.api.meta import ObjectMeta
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSetTemplate
from grove.api.topology import ClusterTopology, ClusterTopologyBinding

Body = dict[str, Any]


class Unmappable(ValueError):
    """A gang cannot be told to the scheduler; the message says why, and what would help. `event` is what that
    is called in an event on the gang."""

    def __init__(self, why: str, event: EventReason = EventReason.SCHEDULER_NOT_TOLD) -> None:
        super().__init__(why)
        self.event = event


class Explanation(Struct, frozen=True, gc=False):
    """One of several reasons for an opinion."""

    message: str = ""


class Opinion(Struct, frozen=True):
    """A condition of somebody else's object, as far as anybody here reads it."""

    type: str = ""
    status: str = ""
    message: str = ""
    node_pool: str = field(default="", name="nodePool")
    """KAI's: of which part of the cluster it is said."""
    reasons: tuple[Explanation, ...] | None = None
    """KAI's."""


class Opinions(Struct, frozen=True):
    """The status of somebody else's object: of most, nothing."""

    conditions: tuple[Opinion, ...] | None = None
    scheduling_conditions: tuple[Opinion, ...] | None = field(default=None, name="schedulingConditions")
    """KAI's, the latest last."""
    phase: str | None = None
    """Volcano's."""


_SILENCE = Opinions()


class Foreign(Struct, frozen=True):
    """An object of such a kind, as the cluster has it."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: Opinions | None = None

    @property
    def said(self) -> Opinions:
        """What its scheduler says of it."""
        return self.status or _SILENCE


class Wish(Struct, frozen=True):
    """What is asked of a scheduler by a set: the metadata that may name a queue, and the template."""

    metadata: ObjectMeta
    template: PodCliqueSetTemplate


class Request(Struct, frozen=True):
    """A gang that a scheduler is to be told of."""

    gang: Body
    """The PodGang as it should be."""
    uid: str
    """Its UID, which may be known only on the way."""
    wish: Wish
    topology: str = ""
    """What the scheduler calls the topology that the gang's constraints mean."""
    found: Foreign | None = None
    """What the scheduler was told before."""
    lacking: str = ""
    """Why the installed kind of that object will not do (see `Particular`)."""


class Marks(Struct, frozen=True):
    """What pods carry for their scheduler."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    spec: Mapping[str, Any] = {}
    near: tuple[Body, ...] = ()
    """Weighted terms of pod affinity, on top of the user's own."""
    beside: tuple[Body, ...] = ()
    """Required terms of pod affinity, on top of the user's own."""


_UNMARKED = Marks()


class Backend(Protocol):
    """A scheduler."""

    @property
    def name(self) -> str:
        """The name of its profile, and the pods' `schedulerName`."""
        ...

    @property
    def keeps(self) -> ForeignKind | None:
        """The kind of the object that it wants for each gang; None: it wants none."""
        ...

    @property
    def minimum_first(self) -> bool:
        """Whether it only counts the pods of a gang, whatever their cliques: then those beyond each clique's
        minimum are held back until the minimum is placed."""
        ...

    def told_name(self, gang: Body) -> str:
        """What that object is called."""
        ...

    def told(self, request: Request) -> Body | None:
        """That object as it should be; None: as it is. Raises Unmappable."""
        ...

    def marks(self, gang: Body, clique: str) -> Marks:
        """What the pods of a clique carry for it."""
        ...

    def cannot(self, wish: Wish) -> Iterator[str]:
        """Why a set could never be scheduled by it, and what would help."""
        ...

    def cannot_keep(self, wish: Wish) -> Iterator[str]:
        """Which topology constraints of a set it cannot keep, and what would help."""
        ...


@runtime_checkable
class Particular(Protocol):
    """A scheduler of which not every version will do: the definition of the kind that it keeps tells."""

    def lacks(self, definition: Body | None) -> str:
        """Why the installed CRD, if any, will not do; empty if it will."""
        ...


@runtime_checkable
class Outspoken(Protocol):
    """A scheduler that says on its own objects why a gang waits."""

    def why(self, found: Foreign) -> str:
        """Why the gang has no nodes yet, in the scheduler's own words; empty if it does not say. The core
        says whose words they are, makes one line of them, and does not repeat each change of them."""
        ...


@runtime_checkable
class Grouping(Protocol):
    """A scheduler that places pods in groups, on terms that a group can never change."""

    def joins(self, gang: Body, members: Iterable[Pod | None]) -> bool:
        """Whether the members of a gang that are yet to be made (None) can be placed in its group. Where the
        others have their nodes on other terms, they would wait in it for ever."""
        ...

    def lone_marks(self, gang: Body, clique: str) -> Marks:
        """What they carry instead, to be placed by themselves beside the others."""
        ...


@runtime_checkable
class Noting(Protocol):
    """A scheduler that looks for annotations on the gangs themselves."""

    @property
    def gang_notes(self) -> Mapping[str, str]:
        """Those annotations."""
        ...


class Enquiry(Struct, frozen=True):
    """An object that must be looked at before a set is accepted."""

    kind: ForeignKind
    name: str
    where: str
    """Where the set names it."""


@runtime_checkable
class Enquiring(Protocol):
    """A scheduler whose sets name objects that must be there already."""

    def enquires(self, wish: Wish) -> Iterator[Enquiry]:
        """Those objects."""
        ...

    def unfit(self, enquiry: Enquiry, found: Body | None) -> str:
        """Why what was found, if anything, will not do; empty if it will."""
        ...


AnyTopology = ClusterTopology | ClusterTopologyBinding


class Sync(Struct, frozen=True):
    """How a scheduler's topology object stands to ours, and what brings it in step."""

    in_sync: bool
    message: str = ""
    observed: int = 0
    """The generation of the scheduler's object that was compared; 0: there is none."""
    intents: tuple[Intent, ...] = ()
    failed: bool = False
    """Whether it cannot be brought in step without somebody's help."""


@runtime_checkable
class TopologyAware(Protocol):
    """A scheduler that keeps a topology object of its own."""

    @property
    def name(self) -> str: ...

    @property
    def topology_kind(self) -> ForeignKind:
        """The kind of that object: it drives the watch."""
        ...

    def topology_name(self, topology: AnyTopology) -> str:
        """What the object that we manage is called."""
        ...

    def sync_topology(self, topology: AnyTopology, found: Foreign | None) -> Sync:
        """Bring the object that we manage in step."""
        ...

    def on_topology_delete(self, name: str, found: Foreign) -> tuple[Intent, ...]:
        """An object that we managed for a topology that is gone."""
        ...

    def check_topology_drift(self, topology: AnyTopology, reference: str, found: Foreign | None) -> Sync:
        """Compare an object that somebody else manages; it is never written."""
        ...


def marked(pod: Body, marks: Marks) -> Body:
    """A pod with what it carries for its scheduler."""
    if marks == _UNMARKED:
        return pod
    metadata, spec = dict(pod["metadata"]), {**pod["spec"], **marks.spec}
    for part, values in (("labels", marks.labels), ("annotations", marks.annotations)):
        if values:
            metadata[part] = {**(metadata.get(part) or {}), **values}
    if marks.near or marks.beside:
        spec["affinity"] = _nearer(spec.get("affinity") or {}, marks)
    return {**pod, "metadata": metadata, "spec": spec}


def _nearer(affinity: Body, marks: Marks) -> Body:
    near = dict(affinity.get("podAffinity") or {})
    for how, terms in (("preferred", marks.near), ("required", marks.beside)):
        if terms:
            rule = f"{how}DuringSchedulingIgnoredDuringExecution"
            near[rule] = [*(near.get(rule) or []), *terms]
    return {**affinity, "podAffinity": near}
