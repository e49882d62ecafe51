"""Reasons and reporters of the Kubernetes events that the operator emits."""

from __future__ import annotations

from enum import StrEnum


class EventReporter(StrEnum):
    """The reporting controller of an event."""

    SET = "podcliqueset-controller"
    CLIQUE = "podclique-controller"
    GROUP = "podcliquescalinggroup-controller"
    TOPOLOGY = "clustertopology-controller"
    SCHEDULER_BACKEND = "scheduler-backend"


class EventReason(StrEnum):
    """The reason of an event. Failures, `AllScheduledReplicasLost` and `...Detected` are warnings."""

    CLIQUE_WRITE_FAILED = "PodCliqueCreateOrUpdateFailed"
    CLIQUE_DELETED = "PodCliqueDeleteSuccessful"
    CLIQUE_DELETE_FAILED = "PodCliqueDeleteFailed"
    GROUP_WRITE_FAILED = "PodCliqueScalingGroupCreateOrUpdateFailed"
    GROUP_DELETED = "PodCliqueScalingGroupDeleteSuccessful"
    GROUP_DELETE_FAILED = "PodCliqueScalingGroupDeleteFailed"
    GROUP_REPLICA_DELETED = "PodCliqueScalingGroupReplicaDeleteSuccessful"
    SET_REPLICA_DELETED = "PodCliqueSetReplicaDeleteSuccessful"
    GANG_WRITE_FAILED = "PodGangCreateOrUpdateFailed"
    GANG_DELETED = "PodGangDeleteSuccessful"
    GANG_DELETE_FAILED = "PodGangDeleteFailed"
    POD_CREATED = "PodCreateSuccessful"
    POD_CREATE_FAILED = "PodCreateFailed"
    POD_DELETED = "PodDeleteSuccessful"
    POD_DELETE_FAILED = "PodDeleteFailed"
    UPDATE_STARTED = "UpdateStarted"
    REPLICA_UPDATED = "ReplicaUpdated"
    UPDATE_FINISHED = "UpdateFinished"
    RECOVERED = "Recovered"
    ALL_SCHEDULED_LOST = "AllScheduledReplicasLost"
    CONSTRAINTS_ENFORCED = "TopologyConstraintsEnforced"
    CONSTRAINTS_NOT_ENFORCED = "TopologyConstraintsNotEnforced"
    TOPOLOGY_LEVELS_AVAILABLE = "TopologyLevelsAvailable"
    TOPOLOGY_LEVELS_UNAVAILABLE = "TopologyLevelsUnavailable"
    TOPOLOGY_LEVELS_INVERTED = "TopologyLevelsInverted"
    TOPOLOGY_DRIFT = "TopologyDriftDetected"
    TOPOLOGY_IN_SYNC = "TopologyInSync"
    SCHEDULER_SYNC_FAILED = "SchedulerSyncFailed"
    KAI_MAPPING_FAILED = "KAIBackendMappingFailed"
    VOLCANO_UNAVAILABLE = "VolcanoCapabilityUnavailable"
    RELEASED_IN_PART = "ReleasedInPart"
    POD_LIMIT_EXCEEDED = "PodLimitExceeded"
    COMPUTE_DOMAIN_CREATED = "ComputeDomainCreated"
    COMPUTE_DOMAIN_FAILED = "ComputeDomainFailed"
    COMPUTE_DOMAIN_DELETED = "ComputeDomainDeleted"
    COMPUTE_DOMAIN_DELETE_FAILED = "ComputeDomainDeleteFailed"
    COMPUTE_DOMAIN_TERMINATING = "ComputeDomainTerminating"
    COMPUTE_DOMAIN_REFERENCED = "ComputeDomainReferenced"
    COMPUTE_DOMAIN_CONFLICT = "ComputeDomainConflict"
    IMEX_CHANNEL_BUSY = "ImexChannelBusy"
    FABRIC_SPLIT = "FabricSplit"
    SET_INVALID = "PodCliqueSetInvalid"
    DECODE_FAILED = "DecodeFailed"
