"""The base class of scheduler backends, and the data that they are given and return.

Backends return the objects that should exist. The core writes, watches, compares and repairs them: a backend
never has a client, and an exception in one affects only the sets that use it.
"""
# ruff: noqa: ARG002 - defaults do not depend on their arguments

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

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
    pods: tuple[Pod, ...] = ()
    """The living pods of the gang."""
    objects: Mapping[str, SchedulerObject] = {}
    """The existing objects of the scheduler whose owner is the gang, by name."""
    name: str = ""
    """The name of the scheduler's object, as `gang_object_name` returned it."""
    found: SchedulerObject | None = None
    """The existing object of that name."""
    kind_problem: str = ""
    """Why the kind of that object cannot be used (see `kind_problem` of the backend); empty if it can."""


class PlacementRequest(Struct, frozen=True):
    """A gang of which a backend says whether the operator places it."""

    gang: Body
    """The desired PodGang."""
    pods: int
    in_fabric: bool
    """Whether its pods join fabric domains."""
    follows_base: bool
    """Whether it is a scaled gang."""


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


class ClusterLookup(Struct, frozen=True):
    """An object that admission reads before it accepts a set."""

    kind: ForeignKind
    name: str
    where: str
    """The place in the set that names it, for the error message."""


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


class SchedulerBackend(ABC):
    """The base class of scheduler backends. Each overrides what its scheduler needs: the default of all that
    is not abstract means that the scheduler does not need it."""

    gang_object_kind: ForeignKind | None = None
    """The kind of the object that the scheduler needs for each gang, which the core watches; None if it needs
    none."""
    older_versions: tuple[SchedulerBackend, ...] = ()
    """The same backend for older versions of `gang_object_kind`, the latest first. The core uses the first
    one whose version the API server serves, and notices when another one is served."""
    minimum_first: bool = False
    """Whether the scheduler only counts the pods of a gang, regardless of their cliques. Then the pods beyond
    the minimum of each clique stay gated until the minimum is scheduled."""
    gates_hold_group: bool = False
    """Whether the scheduler considers no pod of a group of which any pod is gated. Then the pods beyond the
    minimum are not gated: they are created when the minimum is scheduled."""
    gang_annotations: Mapping[str, str] = MappingProxyType({})
    """Annotations of the PodGangs themselves, which the scheduler reads."""
    annotation_prefixes: tuple[str, ...] = ()
    """How the keys of annotations begin that users set on a PodCliqueSet, and that the scheduler reads on
    PodGangs or on its own objects. A change of one is written at once; other annotations of a set reach them
    with their next write."""
    inspects_crd: bool = False
    """Whether only some versions of the scheduler are supported, recognized by the CRD of `gang_object_kind`.
    Then the core watches that CRD and passes it to `crd_problem`."""
    tries_fallbacks: bool = False
    """Whether `topologyConstraint.fallbacks` are tried: only where the operator itself places the gangs."""
    topology_kind: ForeignKind | None = None
    """The kind of the scheduler's own topology object, which the core watches; None if it has none. With a
    kind, `sync_topology` and `check_topology_drift` are required."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of its profile, and the `schedulerName` of its pods."""

    @abstractmethod
    def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> Iterable[str]:
        """Which topology constraints of a set this scheduler cannot satisfy, and what the user can do. It has
        no default, as ignoring a constraint is never right."""

    def unschedulable_reasons(self, scheduling_spec: SchedulingSpec) -> Iterable[str]:
        """Why this scheduler could never schedule a set, and what the user can do; none by default."""
        return ()

    def lookups(self, scheduling_spec: SchedulingSpec) -> Iterable[ClusterLookup]:
        """The objects that a set names and that must exist already; none by default."""
        return ()

    def lookup_problem(self, lookup: ClusterLookup, found: Body | None) -> str:
        """Why such an object cannot be used, or that it is missing (`found` is None); empty, the default, if
        it can be used."""
        return ""

    def places(self, request: PlacementRequest) -> bool:
        """Whether the operator chooses the nodes of a gang for this scheduler; by default it does not."""
        return False

    def gang_object_name(self, request: GangRequest) -> str:
        """The name of the object of a gang; by default that of the gang. Raises `UnsupportedGang`."""
        return str(request.gang["metadata"]["name"])

    def gang_object(self, request: GangRequest) -> Body | None:
        """The desired object of a gang; None, the default: leave it as it is. Raises `UnsupportedGang`."""
        return None

    def lost_constraints(self, gang: Body, spec: Mapping[str, Any]) -> str:
        """Which topology constraints of a gang are missing in the `spec` of its object as the API server
        stored it, and what the user can do; empty, the default, if none is. Where an object without a spec
        would lack some, pods are created only after the stored object has been compared."""
        return ""

    def obsolete_objects(self, request: GangRequest) -> Iterable[str]:
        """The names of the gang's objects that are not its current one and that none of `request.pods`
        needs: the core deletes them. None by default."""
        return ()

    def crd_problem(self, definition: Body | None) -> str:
        """Why the installed CRD, if any, cannot be used; empty, the default, if it can."""
        return ""

    def kind_problem(self, list_error: str) -> str:
        """Why `gang_object_kind` cannot be used, and what the user can do: no version of it is served, or it
        cannot be listed because of `list_error`. Empty if the backend knows nothing better than the reply of
        the API server, as by default on errors."""
        kind = self.gang_object_kind
        if kind is None or list_error:
            return ""
        return f"{kind.plural}.{kind.group} is not served: install {self.name} with its CRDs"

    def waiting_reason(self, found: SchedulerObject) -> str:
        """Why the gang of the object is not scheduled yet, as the scheduler's own message; empty, which is
        the default, if there is none. The core prefixes the name of the scheduler, joins the lines, and
        limits how often a changed message is shown."""
        return ""

    def pod_additions(self, gang: Body, clique: str, name: str) -> PodAdditions:
        """What the pods of a clique need for this scheduler; by default nothing but its name. `name` is that
        of the gang's object."""
        return _NO_ADDITIONS

    def can_join_group(self, gang: Body, name: str, members: Iterable[Pod | None]) -> bool:
        """Whether the members of a gang that are still to be created (None) can be scheduled in its group of
        that name; by default they always can. For schedulers whose groups are immutable: if the others were
        scheduled in an earlier group, they could be too few for it and would wait for ever."""
        return True

    def ungrouped_pod_additions(self, gang: Body, clique: str) -> PodAdditions:
        """What such pods need instead, to be scheduled without a group near the others; nothing by
        default."""
        return _NO_ADDITIONS

    def topology_name(self, topology: AnyTopology) -> str:
        """The name of the topology object that the operator manages; by default that of our topology."""
        return topology.metadata.name

    def sync_topology(self, topology: AnyTopology, found: SchedulerObject | None) -> TopologySync:
        """Compares the object that the operator manages, and plans the writes that update it."""
        return self._no_topology_method("sync_topology")

    def on_topology_delete(self, name: str, found: SchedulerObject) -> tuple[Intent, ...]:
        """The writes after a topology was deleted; `found` is the object that the operator managed for it. By
        default none: the garbage collector deletes an object whose owner is the topology."""
        return ()

    def check_topology_drift(
        self, topology: AnyTopology, reference: str, found: SchedulerObject | None
    ) -> TopologySync:
        """Compares an object that the operator does not manage; it is never written."""
        return self._no_topology_method("check_topology_drift")

    def _no_topology_method(self, method: str) -> TopologySync:
        why = f"scheduler backend {self.name} has a topology_kind and no {method}: update its package"
        return TopologySync(in_sync=False, message=why, failed=True)


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
