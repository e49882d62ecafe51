"""The input of planning: everything that is known about one replica of a set at one moment."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from grove.api.types.common import LastError
from grove.api.types.kubernetes_objects import (
    HorizontalPodAutoscaler,
    PartialObjectMetadata,
    ResourceClaimTemplateObject,
    Service,
)
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.fabrics.provider import Domain
from grove.fabrics.resolved import ReplicaDomains, ResolvedDomain
from grove.plan.model import ReplicaReport, UserError
from grove.plan.placement.assignment import Placements
from grove.schedulers.backend import SchedulerBackend, SchedulerObject
from grove.topology.constraints import ResolvedTopology

NamespacedName = tuple[str, str]
"""Namespace and name."""


class ClaimObjects(Struct, frozen=True):
    """The existing claims that a set shares, by name, and the template objects that it refers to."""

    claims: Mapping[str, PartialObjectMetadata] = {}
    templates: Mapping[NamespacedName, ResourceClaimTemplateObject] = {}
    undecodable: Mapping[NamespacedName, str] = {}
    """Template objects that exist and cannot be decoded, with the reason."""
    visible: bool = True
    """Whether claims can be listed; if not, it is unknown which ones exist."""
    terminating: frozenset[str] = frozenset()
    """Names of terminating claims."""


class PriorityLookup(Struct, frozen=True):
    """Whether the PriorityClass that a set names is missing."""

    missing: bool = False
    due: float | None = None
    """When a class that is not found counts as missing: until then it may have been created just now."""


class Snapshot(Struct, frozen=True):
    """The existing objects of one replica, by name; pods are unordered.

    Every object with the labels of the replica is included, with any owner; the plan decides which ones the
    set owns.
    """

    workload: PodCliqueSet
    index: int
    service: Service | None = None
    groups: Mapping[str, PodCliqueScalingGroup] = {}
    cliques: Mapping[str, PodClique] = {}
    gangs: Mapping[str, PodGang] = {}
    autoscalers: Mapping[str, HorizontalPodAutoscaler] = {}
    pods: tuple[Pod, ...] = ()
    deleted_pods: frozenset[str] = frozenset()
    """Names of pods whose deletion was observed. A referenced name without a pod that is not in here belongs
    to a pod that is not created yet or not in the cache yet."""
    lost_pods: tuple[Pod, ...] = ()
    """Pods that left the cache without having terminated and that a gang refers to (see
    `members.lost_pods`)."""
    namespace_terminating: bool = False
    """Whether nothing can be created in the namespace any more."""
    placements: Placements | None = None
    """What is decided on the placement of gangs; None: the operator places no gangs."""
    binding: PartialObjectMetadata | None = None
    """The RoleBinding of the set's init containers."""
    init_image: str = ""
    """The image of the init container; empty if the operator is not configured with one."""
    start_order: bool = True
    """Whether the operator is configured for start orders."""
    topology: ResolvedTopology | None = None
    """The topology that the set refers to; None if topology constraints are disabled."""
    fallback_topologies: tuple[ResolvedTopology, ...] = ()
    """Those of the fallbacks of its constraint, in order."""
    scheduler: SchedulerBackend | None = None
    """The scheduler backend of the replica; None: no scheduler objects are written."""
    scheduler_objects: Mapping[str, SchedulerObject] | None = {}
    """The existing scheduler objects of the replica's gangs; None if they cannot be listed."""
    domains: ReplicaDomains = {}
    """The fabric domains that the pods of the replica join."""
    shared: ClaimObjects = ClaimObjects()
    """The existing claims that the replica's pods refer to."""
    held: bool = False
    """Whether the replica is held at its current size because its set asks for too many pods (see
    `desired.limits`)."""
    kind_problem: str = ""
    """Why the kind of the scheduler's objects cannot be used; empty if it can."""
    priority: PriorityLookup = PriorityLookup()
    """Whether the PriorityClass that the set names exists."""
    node_labels: Mapping[str, Mapping[str, str]] | None = None
    """The labels of the nodes of the replica's pods, at least those of the topology's levels; None: not
    known, or in `placements`."""
    unused_labels: frozenset[str] = frozenset()
    """The labels of the topology's levels that no node has."""

    @property
    def priority_class(self) -> str:
        """The PriorityClass of the set's gangs, and of pods that name none; empty if the set names none, or
        one that does not exist."""
        return "" if self.priority.missing else self.workload.spec.template.priority_class_name

    @property
    def nodes_of_pods(self) -> Mapping[str, Mapping[str, str]] | None:
        """The labels of the node of each bound pod, by the name of the pod; None: not known."""
        labels = self.placements.node_labels if self.placements is not None else self.node_labels
        if labels is None:
            return None
        bound = ((pod.metadata.name, pod.spec.node_name) for pod in self.pods)
        return {name: labels[node] for name, node in bound if node in labels}

    def topology_of(self, attempt: int) -> ResolvedTopology | None:
        """The topology of the set's constraint (0), or of one of its fallbacks (1, ...)."""
        return self.fallback_topologies[attempt - 1] if attempt and self.topology else self.topology


class RbacObjects(Struct, frozen=True):
    """The existing objects."""

    account: PartialObjectMetadata | None = None
    role: PartialObjectMetadata | None = None
    binding: PartialObjectMetadata | None = None


class OwnedObjects(Struct, frozen=True):
    """All objects with the labels of a terminating set, with any owner."""

    services: tuple[Service, ...] = ()
    groups: tuple[PodCliqueScalingGroup, ...] = ()
    cliques: tuple[PodClique, ...] = ()
    gangs: tuple[PodGang, ...] = ()
    autoscalers: tuple[HorizontalPodAutoscaler, ...] = ()
    claims: tuple[PartialObjectMetadata, ...] = ()
    pods: tuple[Pod, ...] = ()
    access: RbacObjects = RbacObjects()
    domains: tuple[Domain, ...] = ()
    """Fabric domains that name the set as an owner."""


class SetSnapshot(Struct, frozen=True):
    """Everything that is known about a set at one moment; its replicas have snapshots of their own."""

    workload: PodCliqueSet
    reports: Mapping[int, ReplicaReport] = {}
    """The latest report of each replica."""
    access: RbacObjects | None = None
    """None: no RBAC objects are planned."""
    errors: tuple[LastError, ...] = ()
    """Errors of the set itself, as of the previous pass."""
    invalid: str = ""
    """The message of the admission rules that the stored set breaks; empty: none."""
    topology: ResolvedTopology | None = None
    fallback_topologies: tuple[ResolvedTopology, ...] = ()
    """Those of the fallbacks of its constraint, in order."""
    shared: ClaimObjects | None = None
    """None: no shared claims are planned."""
    domains: tuple[ResolvedDomain, ...] = ()
    """The fabric domains of the set."""
    priority: PriorityLookup = PriorityLookup()
    """Whether the PriorityClass that the set names exists."""
    too_many: UserError | None = None
    """The set requests too many pods and is held: only the replicas that have reported count."""
    surplus: tuple[Snapshot, ...] = ()
    """Replicas above `spec.replicas`."""
    owned_objects: OwnedObjects | None = None
    """All of its objects, if the set is being deleted."""
