"""What a plan is made from: everything known about one replica of a set at one moment."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from grove.api.cliques import PodClique
from grove.api.cluster import Bare, HorizontalPodAutoscaler, Service
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet
from grove.fabrics.provider import Domain
from grove.fabrics.registry import Providers
from grove.plan.domain_states import State
from grove.plan.placement import Assignment
from grove.plan.sharing import Shared
from grove.schedulers.backend import Backend, Foreign
from grove.topology.constraints import Topology


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
    departed: frozenset[str] = frozenset()
    """Names of pods that were seen to go. A name that is referenced, has no pod and is not here is a pod
    that has not been made yet, or not been seen yet."""
    placements: Mapping[str, Assignment] | None = None
    """The places that gangs were given. A gang without one waits; None: nobody waits for places."""
    binding: Bare | None = None
    """The RoleBinding of the set's init containers."""
    init_image: str = ""
    """The image of the init container; empty if the operator was told none."""
    topology: Topology | None = None
    """The topology that the set means; None if constraints are switched off."""
    scheduler: Backend | None = None
    """The backend of the scheduler that the pods ask for; None: it is told nothing."""
    told: Mapping[str, Foreign] | None = {}
    """What the scheduler was told about the replica's gangs; None if that cannot be seen."""
    fabrics: Providers = Providers()
    """The vendors whose domains cliques may be in."""
    domains: Mapping[str, Mapping[str, Domain] | None] = {}
    """By vendor, the domains that the replica asks for, by name; None if they cannot be seen."""
    templates: Mapping[tuple[str, str], State] = {}
    """Those of them, by vendor and name, whose ResourceClaimTemplate is not theirs, and what follows."""
    channels: Mapping[str, int] = {}
    """By vendor, how many pods of the whole cluster can be in domains at once, where that is known."""
    shared: Shared = Shared()
    """What is there of the claims that the replica's pods refer to."""
    held: bool = False
    """Whether the replica stays as it is, because its set asks for too much (see `limits`)."""
    lacking: str = ""
    """Why what is installed of the scheduler will not do."""
