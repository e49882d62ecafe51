"""Condition types and reasons of our kinds. Part of the API: users and other programs match on them."""

from __future__ import annotations

from enum import StrEnum

SCHEDULER_MESSAGE_SEPARATOR = "; "
"""Separates the operator's part of the message of a gang's condition from the scheduler's."""


class ConditionType(StrEnum):
    """The types of conditions; the status of each kind lists its own. For most, True means a problem."""

    CLIQUE_SCHEDULED = "PodCliqueScheduled"
    WAS_SCHEDULED = "WasScheduled"
    MIN_AVAILABLE_BREACHED = "MinAvailableBreached"
    GANG_TERMINATION_IN_PROGRESS = "GangTerminationInProgress"
    UPDATE_IN_PROGRESS = "UpdateInProgress"
    TOPOLOGY_LEVELS_UNAVAILABLE = "TopologyLevelsUnavailable"
    CONSTRAINTS_ENFORCED = "TopologyConstraintsEnforced"
    SCHEDULER_TOPOLOGY_DRIFT = "SchedulerTopologyDrift"
    SHADOWED = "Shadowed"
    COMPUTE_DOMAINS_READY = "ComputeDomainsReady"
    INITIALIZED = "Initialized"
    SCHEDULED = "Scheduled"
    READY = "Ready"
    UNHEALTHY = "Unhealthy"
    PLACEMENT_UNPROTECTED = "PlacementUnprotected"
    WAITING = "Waiting"


class CliqueReason(StrEnum):
    """Reasons on a PodClique."""

    SUFFICIENT_SCHEDULED_PODS = "SufficientScheduledPods"
    INSUFFICIENT_SCHEDULED_PODS = "InsufficientScheduledPods"
    HAD_NODES = "PodsHadNodes"
    SCHEDULED_REPLICAS_BELOW_MIN_AVAILABLE = "ScheduledReplicasBelowMinAvailable"
    INSUFFICIENT_READY_PODS = "InsufficientReadyPods"
    SUFFICIENT_READY_PODS = "SufficientReadyPods"
    UPDATE_IN_PROGRESS = "UpdateInProgress"


class GroupReason(StrEnum):
    """Reasons on a PodCliqueScalingGroup."""

    INSUFFICIENT_AVAILABLE_REPLICAS = "InsufficientAvailablePodCliqueScalingGroupReplicas"
    SUFFICIENT_AVAILABLE_REPLICAS = "SufficientAvailablePodCliqueScalingGroupReplicas"
    GANG_TERMINATION_ACTIVE = "GangTerminationActive"
    UPDATE_IN_PROGRESS = "UpdateInProgress"


class UpdateReason(StrEnum):
    """Reasons of `UpdateInProgress`, on cliques outside of groups, on groups and on sets."""

    PROGRESSING = "Progressing"
    NO_ACTIVE_UPDATE = "NoActiveUpdate"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"


class TopologyLevelsReason(StrEnum):
    """Reasons of `TopologyLevelsUnavailable` on a PodCliqueSet."""

    ALL_AVAILABLE = "AllClusterTopologyLevelsAvailable"
    INVERTED = "ClusterTopologyLevelsInverted"
    LEVELS_UNAVAILABLE = "ClusterTopologyLevelsUnavailable"
    NOT_FOUND = "ClusterTopologyNotFound"
    NAME_MISSING = "TopologyNameMissing"
    SWITCHED_OFF = "TopologyAwareSchedulingDisabled"


class EnforcementReason(StrEnum):
    """Reasons of `TopologyConstraintsEnforced` on a PodGang and on a PodCliqueSet: the first two if it is
    True, the others if it is False."""

    BY_PLACEMENT = "EnforcedByPlacement"
    BY_SCHEDULER = "EnforcedByScheduler"
    LEVELS_UNAVAILABLE = "TopologyLevelsUnavailable"
    NOT_CONFIGURED = "SchedulerNotConfigured"
    DROPPED = "ConstraintsDroppedByAPIServer"
    OBJECT_FAILED = "SchedulerObjectFailed"
    UNSUPPORTED = "UnsupportedByScheduler"
    NOT_MET = "RequiredDomainsNotMet"


class DriftReason(StrEnum):
    """Reasons of `SchedulerTopologyDrift` on a topology."""

    IN_SYNC = "InSync"
    DRIFT = "Drift"
    NOT_FOUND = "TopologyNotFound"


class ShadowedReason(StrEnum):
    """The reason of `Shadowed` on a ClusterTopologyBinding."""

    CLUSTER_TOPOLOGY_OF_SAME_NAME = "ClusterTopologyOfSameName"


class GangReason(StrEnum):
    """Reasons on a PodGang."""

    PODS_PENDING = "PodGangPodsCreationPending"
    PODS_CREATED = "PodGangPodsCreated"
    SCHEDULED = "AllPodGroupsScheduled"
    NOT_SCHEDULED = "PodGroupsNotScheduled"
    ONE_MEMBER_POD_PER_NODE = "OneMemberPodPerNode"
    RELEASED_IN_PART = "ReleasedInPart"
    LABEL_MISSING = "TopologyLabelMissing"
    READY = "AllPodGroupsReady"
    NOT_READY = "PodGroupsNotReady"
    BUDGET_SPENT = "TerminationBudgetSpent"
    DEVICES_NOT_HELD = "DevicesNotHeld"
    VOLUMES_NOT_HELD = "VolumesNotHeld"


class ComputeDomainsReason(StrEnum):
    """Reasons of `ComputeDomainsReady` on a PodCliqueSet."""

    ALL_READY = "AllReady"
    WAITING_FOR_PODS = "WaitingForPods"
    PODS_WAITING = "PodsWaiting"
    NODES_NOT_READY = "NodesNotReady"
    DEGRADED = "DomainDegraded"
    FABRIC_SPLIT = "FabricSplit"
    CHANNEL_BUSY = "ImexChannelBusy"
    ONE_MEMBER_POD_PER_NODE = "OneMemberPodPerNode"
    NODE_HELD = "NodeHeldByOtherDomain"
    RECREATED = "ComputeDomainRecreated"
    CLAIM_NOT_CREATED = "ClaimNotCreated"
    TERMINATING = "ComputeDomainTerminating"
    CREATE_FAILED = "CreateFailed"
    NAME_CONFLICT = "NameConflict"
    CRD_MISSING = "ComputeDomainCRDMissing"
    CRD_OUTDATED = "ComputeDomainCRDOutdated"
