"""What a scheduler backend is: one small Protocol, and another for those that know topologies.

Backends return objects as they should be. Who writes, watches, compares and repairs them is the core: a
backend never sees a client, and one that raises costs only its own users.
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
    """A gang cannot be told to the scheduler; the message says why, and what would help. `event` is what that
    is called in an event on the gang."""

    def __init__(self, why: str, event: EventReason = EventReason.SCHEDULER_SYNC_FAILED) -> None:
        super().__init__(why)
        self.event = event


class ConditionReason(Struct, frozen=True, gc=False):
    """One of several reasons for an opinion."""

    message: str = ""


class ObjectCondition(Struct, frozen=True):
    """A condition of somebody else's object, as far as anybody here reads it."""

    type: str = ""
    status: str = ""
    message: str = ""
    node_pool: str = field(default="", name="nodePool")
    """KAI's: of which part of the cluster it is said."""
    reasons: tuple[ConditionReason, ...] | None = None
    """KAI's."""


class ObjectStatus(Struct, frozen=True):
    """The status of somebody else's object: of most, nothing."""

    conditions: tuple[ObjectCondition, ...] | None = None
    scheduling_conditions: tuple[ObjectCondition, ...] | None = field(
        default=None, name="schedulingConditions"
    )
    """KAI's, the latest last."""
    phase: str | None = None
    """Volcano's."""


_NO_STATUS = ObjectStatus()


class SchedulerObject(Struct, frozen=True):
    """An object of such a kind, as the cluster has it."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: ObjectStatus | None = None

    @property
    def reported_status(self) -> ObjectStatus:
        """What its scheduler says of it."""
        return self.status or _NO_STATUS


class SchedulingSpec(Struct, frozen=True):
    """What is asked of a scheduler by a set: the metadata that may name a queue, and the template."""

    metadata: ObjectMeta
    template: PodCliqueSetTemplate


class GangRequest(Struct, frozen=True):
    """A gang that a scheduler is to be told of."""

    gang: Body
    """The PodGang as it should be."""
    uid: str
    """Its UID, which may be known only on the way."""
    scheduling_spec: SchedulingSpec
    topology: str = ""
    """What the scheduler calls the topology that the gang's constraints mean."""
    found: SchedulerObject | None = None
    """What the scheduler was told before."""
    crd_problem: str = ""
    """Why the installed kind of that object will not do (see `VersionedBackend`)."""


class PodAdditions(Struct, frozen=True):
    """What pods carry for their scheduler."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    spec: Mapping[str, Any] = {}
    preferred_affinity: tuple[Body, ...] = ()
    """Weighted terms of pod affinity, on top of the user's own."""
    required_affinity: tuple[Body, ...] = ()
    """Required terms of pod affinity, on top of the user's own."""


_NO_ADDITIONS = PodAdditions()


class SchedulerBackend(Protocol):
    """A scheduler."""

    @property
    def name(self) -> str:
        """The name of its profile, and the pods' `schedulerName`."""
        ...

    @property
    def gang_object_kind(self) -> ForeignKind | None:
        """The kind of the object that it wants for each gang; None: it wants none."""
        ...

    @property
    def minimum_first(self) -> bool:
        """Whether it only counts the pods of a gang, whatever their cliques: then those beyond each clique's
        minimum are held back until the minimum is placed."""
        ...

    def gang_object_name(self, gang: Body) -> str:
        """What that object is called."""
        ...

    def gang_object(self, request: GangRequest) -> Body | None:
        """That object as it should be; None: as it is. Raises Unmappable."""
        ...

    def pod_additions(self, gang: Body, clique: str) -> PodAdditions:
        """What the pods of a clique carry for it."""
        ...

    def unschedulable_reasons(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """Why a set could never be scheduled by it, and what would help."""
        ...

    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterator[str]:
        """Which topology constraints of a set it cannot keep, and what would help."""
        ...


@runtime_checkable
class VersionedBackend(Protocol):
    """A scheduler of which not every version will do: the definition of the kind that it keeps tells."""

    def crd_problem(self, definition: Body | None) -> str:
        """Why the installed CRD, if any, will not do; empty if it will."""
        ...


@runtime_checkable
class WaitingReasonBackend(Protocol):
    """A scheduler that says on its own objects why a gang waits."""

    def waiting_reason(self, found: SchedulerObject) -> str:
        """Why the gang has no nodes yet, in the scheduler's own words; empty if it does not say. The core
        says whose words they are, makes one line of them, and does not repeat each change of them."""
        ...


@runtime_checkable
class PodGroupBackend(Protocol):
    """A scheduler that places pods in groups, on terms that a group can never change."""

    def can_join_group(self, gang: Body, members: Iterable[Pod | None]) -> bool:
        """Whether the members of a gang that are yet to be made (None) can be placed in its group. Where the
        others have their nodes on other terms, they would wait in it for ever."""
        ...

    def ungrouped_pod_additions(self, gang: Body, clique: str) -> PodAdditions:
        """What they carry instead, to be placed by themselves beside the others."""
        ...


@runtime_checkable
class AnnotatedGangBackend(Protocol):
    """A scheduler that looks for annotations on the gangs themselves."""

    @property
    def gang_annotations(self) -> Mapping[str, str]:
        """Those annotations."""
        ...


class ClusterLookup(Struct, frozen=True):
    """An object that must be looked at before a set is accepted."""

    kind: ForeignKind
    name: str
    where: str
    """Where the set names it."""


@runtime_checkable
class LookupBackend(Protocol):
    """A scheduler whose sets name objects that must be there already."""

    def lookups(self, scheduling_spec: SchedulingSpec) -> Iterator[ClusterLookup]:
        """Those objects."""
        ...

    def lookup_problem(self, lookup: ClusterLookup, found: Body | None) -> str:
        """Why what was found, if anything, will not do; empty if it will."""
        ...


AnyTopology = ClusterTopology | ClusterTopologyBinding


class TopologySync(Struct, frozen=True):
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

    def sync_topology(self, topology: AnyTopology, found: SchedulerObject | None) -> TopologySync:
        """Bring the object that we manage in step."""
        ...

    def on_topology_delete(self, name: str, found: SchedulerObject) -> tuple[Intent, ...]:
        """An object that we managed for a topology that is gone."""
        ...

    def check_topology_drift(
        self, topology: AnyTopology, reference: str, found: SchedulerObject | None
    ) -> TopologySync:
        """Compare an object that somebody else manages; it is never written."""
        ...


def with_pod_additions(pod: Body, additions: PodAdditions) -> Body:
    """A pod with what it carries for its scheduler."""
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
