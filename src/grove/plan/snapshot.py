"""The input of planning: everything that is known about one replica of a set at one moment."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from grove.api.types.kubernetes_objects import HorizontalPodAutoscaler, PartialObjectMetadata, Service
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.fabrics.resolved import ReplicaDomains
from grove.plan.desired.shared_claims import ClaimObjects
from grove.plan.placement import Assignment
from grove.schedulers.backend import SchedulerBackend, SchedulerObject
from grove.topology.constraints import ResolvedTopology


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
    placements: Mapping[str, Assignment] | None = None
    """The assignments of gangs. A gang without one waits; None: no gang waits for an assignment."""
    binding: PartialObjectMetadata | None = None
    """The RoleBinding of the set's init containers."""
    init_image: str = ""
    """The image of the init container; empty if the operator is not configured with one."""
    topology: ResolvedTopology | None = None
    """The topology that the set refers to; None if topology constraints are disabled."""
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
    crd_problem: str = ""
    """Why the installed CRDs of the scheduler cannot be used; empty if they can."""
