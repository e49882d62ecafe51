"""PodCliqueSet: the workload as users write it. The operator creates all other objects from it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import field

from grove.api.meta import Condition, ObjectMeta
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
from grove.api.types.topology_constraint import PACKS_SOMETHING, SetTopologyConstraint, TopologyConstraint
from grove.api.wire import Count, Duration, Int32, Int64, Rule, Time, Wire, always, defaulted, keyed


class StartupType(StrEnum):
    """The order in which the cliques of a replica start."""

    ANY_ORDER = "CliqueStartupTypeAnyOrder"
    IN_ORDER = "CliqueStartupTypeInOrder"
    EXPLICIT = "CliqueStartupTypeExplicit"


class UpdateStrategyType(StrEnum):
    """Whether the operator replaces the pods when the template changes, or the user does by deleting them."""

    ROLLING_RECREATE = "RollingRecreate"
    ON_DELETE = "OnDelete"


class UpdateStrategy(Wire, frozen=True):
    """How a changed template reaches the pods."""

    type: UpdateStrategyType = defaulted(UpdateStrategyType.ROLLING_RECREATE)
    """`RollingRecreate`: the operator replaces pods, one replica after another. `OnDelete`: pods get the new
    template only when they are deleted and created again."""
    paused: bool = False
    """Pauses a rolling update. Pods that are lost meanwhile are still replaced, from the new template."""


class HeadlessServiceConfig(Wire, frozen=True):
    """The headless Service of each replica."""

    publish_not_ready_addresses: bool = defaulted(True)
    """Whether the DNS names of pods resolve before the pods are ready."""


class CliqueTemplate(Wire, frozen=True, kw_only=True):
    """One clique of the set: pods of one role."""

    name: str
    """Unique in the set, and part of the names of its pods. Immutable."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels for the PodClique and its pods."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations for the PodClique and its pods."""
    topology_constraint: Annotated[TopologyConstraint, PACKS_SOMETHING] | None = None
    """The topology domain into which the pods of one PodClique are packed. Immutable."""
    resource_sharing: tuple[ResourceSharing, ...] = ()
    """ResourceClaims that the pods of this clique share. Immutable."""
    rolling_update: RollingUpdate | None = None
    """How fast a rolling update replaces the pods. Not allowed on cliques of a scaling group."""
    spec: PodCliqueSpec
    """The spec of the pods, and how many there are."""


class ScalingGroupTemplate(Wire, frozen=True, kw_only=True):
    """Cliques of the set that are scaled together."""

    name: str
    """Unique in the set, and part of the names of its pods. Immutable."""
    clique_names: tuple[str, ...]
    """The member cliques. A clique can be in one group only. Immutable."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations for the PodCliqueScalingGroup."""
    replicas: Count = defaulted(1)
    """The number of copies of the members. It is the initial value: it is read when the PodCliqueScalingGroup
    is created, and later changes come from scaling that object."""
    min_available: Count = defaulted(1)
    """The number of group replicas that belong to the base gang of a set replica and are scheduled with it.
    Each further group replica is a gang of its own. Immutable."""
    scale_config: AutoScalingConfig | None = None
    """Creates a HorizontalPodAutoscaler for the group."""
    rolling_update: RollingUpdate | None = None
    """How fast a rolling update replaces the replicas of the group."""
    resource_sharing: tuple[GroupResourceSharing, ...] = ()
    """ResourceClaims that the cliques of this group share. Immutable."""
    topology_constraint: Annotated[TopologyConstraint, PACKS_SOMETHING] | None = None
    """The topology domain into which one replica of the group is packed. Immutable."""


class PodCliqueSetTemplate(Wire, frozen=True, kw_only=True):
    """The cliques and scaling groups of one replica, and how they are started, placed and terminated."""

    RULES: ClassVar = (
        # A set may name the topology only, for the constraints of its groups and cliques.
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
    """The cliques of a replica, one for each role; at least one. Cliques cannot be added or removed later."""
    clique_startup_type: StartupType = defaulted(StartupType.ANY_ORDER)
    """The order in which the cliques start: all at once, each after the one listed before it, or each after
    the cliques in its `startsAfter`. Immutable."""
    priority_class_name: str = ""
    """The PriorityClass of the gangs, and of all pods whose own spec names none. It must exist; a change
    replaces the pods."""
    headless_service_config: HeadlessServiceConfig | None = None
    """The headless Service of each replica."""
    topology_constraint: SetTopologyConstraint | None = None
    """The topology domain into which one replica of the set is packed. With `topologyName` alone, it selects
    the topology for the constraints of the groups and cliques. Immutable."""
    termination_delay: Duration | None = None
    """How long a gang may stay below `minAvailable` before gang termination deletes all its pods and creates
    them again. Defaults to `4h0m0s`."""
    resource_claim_templates: tuple[ResourceClaimTemplate, ...] = ()
    """Templates for ResourceClaims that pods share. Immutable."""
    resource_sharing: tuple[SetResourceSharing, ...] = ()
    """ResourceClaims that cliques and groups of this set share. Immutable."""
    pod_clique_scaling_groups: tuple[ScalingGroupTemplate, ...] = ()
    """Groups of cliques that are scaled together. Groups cannot be added or removed later."""

    @property
    def grouped_cliques(self) -> frozenset[str]:
        """The names of the cliques that are in a group."""
        return frozenset(name for group in self.pod_clique_scaling_groups for name in group.clique_names)


class PodCliqueSetSpec(Wire, frozen=True, kw_only=True):
    """The template of the workload, the number of its replicas, and how updates reach them."""

    replicas: Count = defaulted(0)
    """The number of copies of the template. Each has its own gangs."""
    update_strategy: UpdateStrategy = UpdateStrategy()
    """How a changed template reaches the pods."""
    template: PodCliqueSetTemplate
    """The cliques and scaling groups of one replica."""


class ReplicaUpdateProgress(Wire, frozen=True):
    """A replica that is being updated."""

    replica_index: Int32
    """The index of the replica."""
    update_started_at: Time | None = None
    """When the update of the replica started."""
    update_ended_at: Time | None = None
    """When the update of the replica was complete."""


class PodCliqueSetUpdateProgress(Wire, frozen=True):
    """An update of the set: in progress until `updateEndedAt` is set."""

    update_started_at: Time | None = None
    """When the update started."""
    update_ended_at: Time | None = None
    """When the update was complete."""
    updated_pod_cliques_count: Int32 = defaulted(0)
    """The number of PodCliques outside of scaling groups that have been updated and are available."""
    total_pod_cliques_count: Int32 = defaulted(0)
    """The number of PodCliques outside of scaling groups."""
    updated_pod_clique_scaling_groups_count: Int32 = defaulted(0)
    """The number of PodCliqueScalingGroups that have been updated."""
    total_pod_clique_scaling_groups_count: Int32 = defaulted(0)
    """The number of PodCliqueScalingGroups."""
    currently_updating: tuple[ReplicaUpdateProgress, ...] = ()
    """The replica that is being updated now."""


class PodGangSummary(Wire, frozen=True):
    """The status of one PodGang of the set."""

    name: str
    """The name of the PodGang."""
    phase: GangPhase
    """The phase of the PodGang."""
    conditions: tuple[Condition, ...] = ()
    """The conditions of the PodGang."""


class ComputeDomainSummary(Wire, frozen=True):
    """The status of one ComputeDomain of the set. For information: the operator decides nothing by it."""

    name: str
    """The name of the ComputeDomain."""
    mode: str = ""
    """`auto`, or `explicit` for a ComputeDomain that a clique names in an annotation."""
    replica_indices: tuple[Int32, ...] = ()
    """The indices of the set's replicas that are in the ComputeDomain."""
    uid: str = ""
    """The UID of the ComputeDomain."""
    phase: str = ""
    """`Missing`, `Pending`, `Forming`, `Ready`, `Degraded`, `Terminating` or `Conflict`."""
    ready_nodes: Int32 = 0
    """The number of its nodes that are ready."""
    total_nodes: Int32 = 0
    """The number of its nodes."""
    clique_ids: tuple[str, ...] = field(name="cliqueIDs", default=())
    """The NVLink partitions that its nodes belong to; more than one means that the fabric is split."""
    reason: str = ""
    """Why pods of the set cannot use it, as a reason of the condition `ComputeDomainsReady`; empty if they
    can. The phase says only what state its nodes are in."""


class PodCliqueSetStatus(Wire, frozen=True):
    """The observed state of the set's replicas."""

    observed_generation: Int64 = 0
    """The generation of the spec that was last reconciled."""
    conditions: tuple[Condition, ...] = ()
    """The condition types are `UpdateInProgress`, `TopologyLevelsUnavailable`, `TopologyConstraintsEnforced`
    and `ComputeDomainsReady`."""
    last_errors: tuple[LastError, ...] = ()
    """Errors that keep the operator from reconciling the set."""
    replicas: Int32 = 0
    """The number of replicas that the spec asks for."""
    updated_replicas: Int32 = defaulted(0)
    """The number of available replicas created from the latest template."""
    available_replicas: Int32 = defaulted(0)
    """The number of replicas whose cliques and groups are all available."""
    hpa_pod_selector: str = ""
    """The label selector of the pods, for autoscalers."""
    pod_gang_statuses: tuple[PodGangSummary, ...] = ()
    """The phase and conditions of each PodGang of the set."""
    current_generation_hash: str = ""
    """The generation hash of the template that the set is at or is being updated to."""
    update_progress: PodCliqueSetUpdateProgress | None = None
    """The latest update, in progress or complete."""
    compute_domains: tuple[ComputeDomainSummary, ...] = ()
    """The status of each ComputeDomain of the set's replicas."""


class PodCliqueSet(Wire, frozen=True, kw_only=True):
    """A workload of several roles, in replicas. The pods of a replica are scheduled as gangs, together or not
    at all, and can be packed into topology domains."""

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
    """The template of the workload, and the number of its replicas."""
    status: PodCliqueSetStatus = PodCliqueSetStatus()
    """The observed state of the replicas."""
