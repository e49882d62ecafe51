"""The interface of scheduler backends: one small Protocol, and further ones for optional capabilities.

Backends return the objects that should exist. The core writes, watches, compares and repairs them: a backend
never has a client, and an exception in one affects only the sets that use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from grove.api.event_reasons import EventReason
from grove.api.intents import Intent
from grove.api.meta import ObjectMeta
from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.kind import ForeignKind as ForeignKind
from grove.api.types.pod import Pod
from grove.api.types.podcliqueset import PodCliqueSetTemplate

Body = dict[str, Any]


class UnsupportedGang(ValueError):
    """The scheduler backend cannot represent a gang; the message says why, and what the user can do. `event`
    is the reason of the event on the gang."""

    def __init__(self, why: str, event: EventReason = EventReason.SCHEDULER_SYNC_FAILED) -> None:
        super().__init__(why)
        self.event = event


class ConditionReason(Struct, frozen=True, gc=False):
    """One of several reasons of a condition."""

    message: str = ""


class ObjectCondition(Struct, frozen=True):
    """A condition of a scheduler's object, with the fields that backends read."""

    type: str = ""
    status: str = ""
    message: str = ""
    node_pool: str = field(default="", name="nodePool")
    """KAI: the node pool that the condition is about."""
    reasons: tuple[ConditionReason, ...] | None = None
    """KAI only."""


class ObjectStatus(Struct, frozen=True):
    """The status of a scheduler's object, with the fields that backends read."""

    conditions: tuple[ObjectCondition, ...] | None = None
    scheduling_conditions: tuple[ObjectCondition, ...] | None = field(
        default=None, name="schedulingConditions"
    )
    """KAI only, the latest last."""
    phase: str | None = None
    """Volcano only."""


_NO_STATUS = ObjectStatus()


class SchedulerObject(Struct, frozen=True):
    """An existing object of a scheduler's kind."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: ObjectStatus | None = None

    @property
    def reported_status(self) -> ObjectStatus:
        """The status that its scheduler reported; empty if there is none."""
        return self.status or _NO_STATUS


class SchedulingSpec(Struct, frozen=True):
    """What a set asks of its scheduler: the metadata, which may name a queue, and the template."""

    metadata: ObjectMeta
    template: PodCliqueSetTemplate


class GangRequest(Struct, frozen=True):
    """A gang for which a scheduler backend builds its object."""

    gang: Body
    """The desired PodGang."""
    uid: str
    """The UID of the PodGang, which may be a deferred value."""
    scheduling_spec: SchedulingSpec
    topology: str = ""
    """The name of the scheduler's own topology object for the gang's constraints."""
    found: SchedulerObject | None = None
    """The existing object of the scheduler for this gang."""
    crd_problem: str = ""
    """Why the installed CRD of that object cannot be used (see `VersionedBackend`); empty if it can."""


class PodAdditions(Struct, frozen=True):
    """Labels, annotations and spec fields that pods need for their scheduler."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    spec: Mapping[str, Any] = {}
    preferred_affinity: tuple[Body, ...] = ()
    """Preferred terms of pod affinity, in addition to the user's own."""
    required_affinity: tuple[Body, ...] = ()
    """Required terms of pod affinity, in addition to the user's own."""


_NO_ADDITIONS = PodAdditions()


class SchedulerBackend(Protocol):
    """A scheduler backend."""

    @property
    def name(self) -> str:
        """The name of its profile, and the `schedulerName` of its pods."""
        ...

    @property
    def gang_object_kind(self) -> ForeignKind | None:
        """The kind of the object that the scheduler needs for each gang; None if it needs none."""
        ...

    @property
    def minimum_first(self) -> bool:
        """Whether the scheduler only counts the pods of a gang, regardless of their cliques. Then the pods
        beyond the minimum of each clique stay gated until the minimum is scheduled."""
        ...

    def gang_object_name(self, gang: Body) -> str:
        """The name of that object."""
        ...

    def gang_object(self, request: GangRequest) -> Body | None:
        """The desired object of a gang; None: leave it as it is. Raises `UnsupportedGang`."""
        ...

    def pod_additions(self, gang: Body, clique: str) -> PodAdditions:
        """What the pods of a clique need for this scheduler."""
        ...

    def unschedulable_reasons(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """Why this scheduler could never schedule a set, and what the user can do."""
        ...

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """Which topology constraints of a set this scheduler cannot satisfy, and what the user can do."""
        ...


@runtime_checkable
class VersionedBackend(Protocol):
    """A backend that supports only some versions of its scheduler, recognized by the CRD of its objects."""

    def crd_problem(self, definition: Body | None) -> str:
        """Why the installed CRD, if any, cannot be used; empty if it can."""
        ...


@runtime_checkable
class WaitingReasonBackend(Protocol):
    """A backend whose scheduler reports on its own objects why a gang is not scheduled."""

    def waiting_reason(self, found: SchedulerObject) -> str:
        """Why the gang is not scheduled yet, as the scheduler's own message; empty if there is none. The core
        prefixes the name of the scheduler, joins the lines, and limits how often a changed message is
        shown."""
        ...


@runtime_checkable
class PodGroupBackend(Protocol):
    """A backend whose scheduler places pods in groups that are immutable."""

    def can_join_group(self, gang: Body, members: Iterable[Pod | None]) -> bool:
        """Whether the members of a gang that are still to be created (None) can be scheduled in its group. If
        the others were scheduled in an earlier group, they could be too few for it and would wait for
        ever."""
        ...

    def ungrouped_pod_additions(self, gang: Body, clique: str) -> PodAdditions:
        """What such pods need instead, to be scheduled without a group near the others."""
        ...


@runtime_checkable
class AnnotatedGangBackend(Protocol):
    """A backend whose scheduler reads annotations of the PodGangs themselves."""

    @property
    def gang_annotations(self) -> Mapping[str, str]:
        """The annotations."""
        ...


class ClusterLookup(Struct, frozen=True):
    """An object that admission reads before it accepts a set."""

    kind: ForeignKind
    name: str
    where: str
    """The place in the set that names it, for the error message."""


@runtime_checkable
class LookupBackend(Protocol):
    """A backend whose sets name objects that must exist already."""

    def lookups(self, scheduling_spec: SchedulingSpec) -> Iterator[ClusterLookup]:
        """The objects."""
        ...

    def lookup_problem(self, lookup: ClusterLookup, found: Body | None) -> str:
        """Why the object cannot be used, or that it is missing (`found` is None); empty if it can be used."""
        ...


AnyTopology = ClusterTopology | ClusterTopologyBinding


class TopologySync(Struct, frozen=True):
    """Whether a scheduler's topology object has the levels of our topology, and the writes that update it."""

    in_sync: bool
    message: str = ""
    observed: int = 0
    """The generation of the scheduler's object that was compared; 0 if it does not exist."""
    intents: tuple[Intent, ...] = ()
    failed: bool = False
    """Whether the object cannot be updated without the user."""


@runtime_checkable
class TopologyAware(Protocol):
    """A backend whose scheduler has a topology object of its own."""

    @property
    def name(self) -> str: ...

    @property
    def topology_kind(self) -> ForeignKind:
        """The kind of that object, which the core watches."""
        ...

    def topology_name(self, topology: AnyTopology) -> str:
        """The name of the object that the operator manages."""
        ...

    def sync_topology(self, topology: AnyTopology, found: SchedulerObject | None) -> TopologySync:
        """Compares the object that the operator manages, and plans the writes that update it."""
        ...

    def on_topology_delete(self, name: str, found: SchedulerObject) -> tuple[Intent, ...]:
        """The writes after a topology was deleted; `found` is the object that the operator managed for it."""
        ...

    def check_topology_drift(
        self, topology: AnyTopology, reference: str, found: SchedulerObject | None
    ) -> TopologySync:
        """Compares an object that the operator does not manage; it is never written."""
        ...


def with_pod_additions(pod: Body, additions: PodAdditions) -> Body:
    """The pod with the additions for its scheduler."""
    if additions == _NO_ADDITIONS:
        return pod
    metadata, spec = dict(pod["metadata"]), {**pod["spec"], **additions.spec}
    for part, values in (("labels", additions.labels), ("annotations", additions.annotations)):
        if values:
            metadata[part] = {**(metadata.get(part) or {}), **values}
    if additions.preferred_affinity or additions.required_affinity:
        spec["affinity"] = _with_affinity(spec.get("affinity") or {}, additions)
    return {**pod, "metadata": metadata, "spec": spec}


def _with_affinity(affinity: Body, additions: PodAdditions) -> Body:
    near = dict(affinity.get("podAffinity") or {})
    for how, terms in (
        ("preferred", additions.preferred_affinity),
        ("required", additions.required_affinity),
    ):
        if terms:
            rule = f"{how}DuringSchedulingIgnoredDuringExecution"
            near[rule] = [*(near.get(rule) or []), *terms]
    return {**affinity, "podAffinity": near}
