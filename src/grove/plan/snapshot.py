"""What a plan is made from: everything known about one replica of a set at one moment."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from grove.api.types.kubernetes_objects import HorizontalPodAutoscaler, PartialObjectMetadata, Service
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.fabrics.provider import Domain
from grove.fabrics.registry import Providers
from grove.plan.desired.shared_claims import ClaimObjects
from grove.plan.fabric.state import DomainState
from grove.plan.placement import Assignment
from grove.schedulers.backend import SchedulerBackend, SchedulerObject
from grove.topology.constraints import ResolvedTopology


class Snapshot(Struct, frozen=True):
    """One replica: what is there. Objects are known by name, pods in no particular order.

    Everything that carries the replica's labels is here, whoever owns it; whose it is, the plan decides.
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
    """Names of pods that were seen to go. A name that is referenced, has no pod and is not here is a pod
    that has not been made yet, or not been seen yet."""
    placements: Mapping[str, Assignment] | None = None
    """The places that gangs were given. A gang without one waits; None: nobody waits for places."""
    binding: PartialObjectMetadata | None = None
    """The RoleBinding of the set's init containers."""
    init_image: str = ""
    """The image of the init container; empty if the operator was told none."""
    topology: ResolvedTopology | None = None
    """The topology that the set means; None if constraints are switched off."""
    scheduler: SchedulerBackend | None = None
    """The backend of the scheduler that the pods ask for; None: it is told nothing."""
    scheduler_objects: Mapping[str, SchedulerObject] | None = {}
    """What the scheduler was told about the replica's gangs; None if that cannot be seen."""
    fabrics: Providers = Providers()
    """The vendors whose domains cliques may be in."""
    domains: Mapping[str, Mapping[str, Domain] | None] = {}
    """By vendor, the domains that the replica asks for, by name; None if they cannot be seen."""
    templates: Mapping[tuple[str, str], DomainState] = {}
    """Those of them, by vendor and name, whose ResourceClaimTemplate is not theirs, and what follows."""
    channels: Mapping[str, int] = {}
    """By vendor, how many pods of the whole cluster can be in domains at once, where that is known."""
    shared: ClaimObjects = ClaimObjects()
    """What is there of the claims that the replica's pods refer to."""
    held: bool = False
    """Whether the replica stays as it is, because its set asks for too much (see `limits`)."""
    crd_problem: str = ""
    """Why what is installed of the scheduler will not do."""
