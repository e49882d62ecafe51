"""PodCliqueSet: what users write; everything else is made from it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import field

from grove.api.meta import Condition, ObjectMeta
from grove.api.types.clustertopology import PACKS_SOMETHING, TopologyConstraint
from grove.api.types.common import (
    AutoScalingConfig,
    GroupResourceSharing,
    LastError,
    ResourceClaimTemplate,
    ResourceSharing,
    RollingUpdate,
    SetResourceSharing,
)
from grove.api.types.kind import AGE, GROVE, Column, Kind, ScaleSubresource
from grove.api.types.podclique import PodCliqueSpec
from grove.api.types.podgang import GangPhase
from grove.api.wire import Count, Duration, Int32, Int64, Rule, Time, Wire, always, defaulted, keyed


class StartupType(StrEnum):
    """In which order the cliques of a gang start."""

    ANY_ORDER = "CliqueStartupTypeAnyOrder"
    IN_ORDER = "CliqueStartupTypeInOrder"
    EXPLICIT = "CliqueStartupTypeExplicit"


class UpdateStrategyType(StrEnum):
    """Who replaces the pods when the template changes."""

    ROLLING_RECREATE = "RollingRecreate"
    ON_DELETE = "OnDelete"


class UpdateStrategy(Wire, frozen=True):
    """How a changed template reaches the pods."""

    type: UpdateStrategyType = defaulted(UpdateStrategyType.ROLLING_RECREATE)
    """`RollingRecreate`: the operator replaces pods, one replica after another. `OnDelete`: it replaces only
    what somebody deletes."""
    paused: bool = False
    """Stops a rolling update where it is; pods that are lost still come back, from the new template."""


class HeadlessServiceConfig(Wire, frozen=True):
    """The headless Service that each replica gets."""

    publish_not_ready_addresses: bool = defaulted(True)
    """Whether pods are found by name before they are ready."""


class CliqueTemplate(Wire, frozen=True, kw_only=True):
    """One clique of the set: pods of one role."""

    name: str
    """Unique in the set, and part of the names of its pods. Immutable."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels for the PodClique and its pods."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations for the PodClique and its pods."""
    topology_constraint: Annotated[TopologyConstraint, PACKS_SOMETHING] | None = None
    """How close together the pods of one PodClique must sit. Immutable."""
    resource_sharing: tuple[ResourceSharing, ...] = ()
    """Claims that the pods of this clique share. Immutable."""
    rolling_update: RollingUpdate | None = None
    """How fast the clique may be replaced. Not for cliques of a scaling group, which has its own."""
    spec: PodCliqueSpec
    """What the pods look like, and how many there are."""


class ScalingGroupTemplate(Wire, frozen=True, kw_only=True):
    """Cliques of the set that are scaled together."""

    name: str
    """Unique in the set, and part of the names of its pods. Immutable."""
    clique_names: tuple[str, ...]
    """The member cliques; none is in two groups. Immutable."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations for the PodCliqueScalingGroup."""
    replicas: Count = defaulted(1)
    """How many copies of the members. Read when the group is made; from then on whoever scales it decides."""
    min_available: Count = defaulted(1)
    """How many replicas belong to the set's own gang and must start with it; each further one is a gang of
    its own. Immutable."""
    scale_config: AutoScalingConfig | None = None
    """Asks for a HorizontalPodAutoscaler on the group."""
    rolling_update: RollingUpdate | None = None
    """How fast replicas of the group may be replaced."""
    resource_sharing: tuple[GroupResourceSharing, ...] = ()
    """Claims that the cliques of this group share. Immutable."""
    topology_constraint: Annotated[TopologyConstraint, PACKS_SOMETHING] | None = None
    """How close together one replica of the group must sit. Immutable."""


class PodCliqueSetTemplate(Wire, frozen=True, kw_only=True):
    """What one replica consists of."""

    RULES: ClassVar = (
        # A set may say which topology is meant and leave it to its parts to pack.
        Rule(
            "!has(self.topologyConstraint) || has(self.topologyConstraint.pack) "
            "|| has(self.topologyConstraint.packDomain) || has(self.topologyConstraint.topologyName) "
            "&& (self.cliques.exists(c, has(c.topologyConstraint)) || has(self.podCliqueScalingGroups) "
            "&& self.podCliqueScalingGroups.exists(g, has(g.topologyConstraint)))",
            "topologyConstraint must specify pack or deprecated packDomain",
            "FieldValueRequired",
            ".topologyConstraint.pack",
        ),
    )

    cliques: Annotated[tuple[CliqueTemplate, ...], keyed("name")]
    """The roles of which a replica consists; at least one. None can be added or removed later."""
    clique_startup_type: StartupType = defaulted(StartupType.ANY_ORDER)
    """In which order the cliques start: all at once, each after the one before it, or each after those in its
    `startsAfter`. Immutable."""
    priority_class_name: str = ""
    """The PriorityClass of the gangs."""
    headless_service_config: HeadlessServiceConfig | None = None
    """The headless Service that each replica gets."""
    topology_constraint: TopologyConstraint | None = None
    """How close together one replica of the set must sit. With only a `topologyName` it says which topology
    the constraints of its parts mean. Immutable."""
    termination_delay: Duration | None = None
    """How long a gang may be short of pods before all of it is started anew. Defaults to `4h0m0s`."""
    resource_claim_templates: tuple[ResourceClaimTemplate, ...] = ()
    """Templates for claims that pods share. Immutable."""
    resource_sharing: tuple[SetResourceSharing, ...] = ()
    """Claims that parts of this set share. Immutable."""
    pod_clique_scaling_groups: tuple[ScalingGroupTemplate, ...] = ()
    """Cliques that are scaled together. None can be added or removed later."""


class PodCliqueSetSpec(Wire, frozen=True, kw_only=True):
    """How many replicas of which template."""

    replicas: Count = defaulted(0)
    """How many copies of the template, each a gang of its own."""
    update_strategy: UpdateStrategy = UpdateStrategy()
    """How a changed template reaches the pods."""
    template: PodCliqueSetTemplate
    """What one replica consists of."""


class ReplicaUpdateProgress(Wire, frozen=True):
    """A replica that is being updated."""

    replica_index: Int32
    """Which one."""
    update_started_at: Time | None = None
    """When its turn began."""
    update_ended_at: Time | None = None
    """When it was done."""


class PodCliqueSetUpdateProgress(Wire, frozen=True):
    """An update of the set: running until `updateEndedAt` is set."""

    update_started_at: Time | None = None
    """When it began."""
    update_ended_at: Time | None = None
    """When it was done."""
    updated_pod_cliques_count: Int32 = defaulted(0)
    """Cliques outside scaling groups that have been updated and answer."""
    total_pod_cliques_count: Int32 = defaulted(0)
    """Cliques outside scaling groups in all."""
    updated_pod_clique_scaling_groups_count: Int32 = defaulted(0)
    """Scaling groups that have been updated."""
    total_pod_clique_scaling_groups_count: Int32 = defaulted(0)
    """Scaling groups in all."""
    currently_updating: tuple[ReplicaUpdateProgress, ...] = ()
    """The replica whose turn it is."""


class PodGangSummary(Wire, frozen=True):
    """How a gang of the set fares."""

    name: str
    """The PodGang."""
    phase: GangPhase
    """Where it is in its life."""
    conditions: tuple[Condition, ...] = ()
    """Its conditions."""


class ComputeDomainSummary(Wire, frozen=True):
    """How a ComputeDomain of the set fares. Informative: no decision depends on it."""

    name: str
    """The ComputeDomain."""
    mode: str = ""
    """`auto`, or `explicit` for one that a clique asked for by name."""
    replica_indices: tuple[Int32, ...] = ()
    """Replicas of the set that are in it."""
    uid: str = ""
    """Its UID."""
    phase: str = ""
    """`Missing`, `Pending`, `Forming`, `Ready`, `Degraded`, `Terminating` or `Conflict`."""
    ready_nodes: Int32 = 0
    """Nodes that are ready in it."""
    total_nodes: Int32 = 0
    """Nodes that are in it."""
    clique_ids: tuple[str, ...] = field(name="cliqueIDs", default=())
    """NVLink partitions that its nodes belong to; more than one means a split fabric."""


class PodCliqueSetStatus(Wire, frozen=True):
    """How the replicas of the set fare."""

    observed_generation: Int64 = 0
    """The generation of the spec that was last acted on."""
    conditions: tuple[Condition, ...] = ()
    """`UpdateInProgress`, `TopologyLevelsUnavailable`, `ComputeDomainsReady`."""
    last_errors: tuple[LastError, ...] = ()
    """Errors that hold the set up."""
    replicas: Int32 = 0
    """Replicas asked for."""
    updated_replicas: Int32 = defaulted(0)
    """Available replicas made from the latest template."""
    available_replicas: Int32 = defaulted(0)
    """Replicas whose cliques and groups are all available."""
    hpa_pod_selector: str = ""
    """Selects the pods, for autoscalers."""
    pod_gang_statuses: tuple[PodGangSummary, ...] = ()
    """How the gangs fare."""
    current_generation_hash: str = ""
    """The hash of the template that the set is at, or on its way to."""
    update_progress: PodCliqueSetUpdateProgress | None = None
    """The latest update."""
    compute_domains: tuple[ComputeDomainSummary, ...] = ()
    """ComputeDomains of the set's replicas."""


class PodCliqueSet(Wire, frozen=True, kw_only=True):
    """Replicas of a workload, each a gang of pods that start together and sit close together."""

    KIND: ClassVar = Kind(
        GROVE,
        "PodCliqueSet",
        "podcliquesets",
        short_names=("pcs",),
        scale=ScaleSubresource(".status.hpaPodSelector"),
        columns=(
            Column("Replicas", "integer", ".spec.replicas"),
            Column("Available", "integer", ".status.availableReplicas"),
            Column("Updated", "integer", ".status.updatedReplicas"),
            Column("PCLQs-Updated", "integer", ".status.updateProgress.updatedPodCliquesCount"),
            Column("PCLQs-Total", "integer", ".status.updateProgress.totalPodCliquesCount"),
            Column("PCSGs-Updated", "integer", ".status.updateProgress.updatedPodCliqueScalingGroupsCount"),
            Column("PCSGs-Total", "integer", ".status.updateProgress.totalPodCliqueScalingGroupsCount"),
            AGE,
        ),
    )

    api_version: str = always(KIND.api_version)
    kind: str = always(KIND.name)
    metadata: ObjectMeta = ObjectMeta()
    spec: PodCliqueSetSpec
    """How many replicas of which template."""
    status: PodCliqueSetStatus = PodCliqueSetStatus()
    """How the replicas fare."""
