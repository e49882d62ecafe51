"""The codes of all reasons for which pods wait. Part of the API: users and other programs match on them.

Codes that a condition or an event has already are used unchanged.
"""

from __future__ import annotations

from enum import StrEnum


class ReasonCode(StrEnum):
    """Why pods wait. What keeps everything else from happening is listed first; what follows from another
    reason comes last. `docs/reasons.md` has a section for each."""

    NO_OPERATOR_LEADING = "NoOperatorLeading"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    DECODE_FAILED = "DecodeFailed"
    PLAN_FAILED = "PlanFailed"
    POD_LIMIT_EXCEEDED = "PodLimitExceeded"
    GANG_SIZE_EXCEEDED = "PodGangSizeExceeded"
    NAME_CONFLICT = "NameConflict"
    OPERATOR_FORBIDDEN = "OperatorForbidden"
    WEBHOOK_UNAVAILABLE = "WebhookUnavailable"
    QUOTA_EXCEEDED = "QuotaExceeded"
    ADMISSION_REFUSED = "AdmissionRefused"
    WRITE_FAILED = "WriteFailed"
    WRITES_SLOW = "WritesSlow"
    INIT_IMAGE_MISSING = "InitImageMissing"
    START_ORDER_DISABLED = "StartOrderDisabled"
    SCHEDULER_NOT_CONFIGURED = "SchedulerNotConfigured"
    SCHEDULER_OBJECT_FAILED = "SchedulerObjectFailed"
    CONSTRAINTS_DROPPED = "ConstraintsDroppedByAPIServer"
    CLAIM_MISSING = "ClaimMissing"
    COMPUTE_DOMAIN_CRD_MISSING = "ComputeDomainCRDMissing"
    COMPUTE_DOMAIN_CRD_OUTDATED = "ComputeDomainCRDOutdated"
    COMPUTE_DOMAIN_CONFLICT = "ComputeDomainConflict"
    COMPUTE_DOMAIN_TERMINATING = "ComputeDomainTerminating"
    COMPUTE_DOMAIN_FAILED = "ComputeDomainFailed"
    CLAIM_NOT_CREATED = "ClaimNotCreated"
    USER_SCHEDULING_GATE = "UserSchedulingGate"
    NODES_NOT_LISTED = "NodesNotListed"
    TOPOLOGY_LABEL_MISSING = "TopologyLabelMissing"
    AFFINITY_CONTRADICTION = "NodeAffinityContradiction"
    ONE_MEMBER_POD_PER_NODE = "OneMemberPodPerNode"
    GANG_TOO_LARGE = "GangTooLarge"
    BOUND_ELSEWHERE = "PodsBoundElsewhere"
    NODE_NOT_READY = "NodeNotReady"
    NODE_CORDONED = "NodeCordoned"
    NODE_TAINT = "NodeTaint"
    NODE_SELECTOR_MISMATCH = "NodeSelectorMismatch"
    INSUFFICIENT_RESOURCES = "InsufficientResources"
    DOMAIN_FRAGMENTED = "DomainFragmented"
    RESERVED_BY_OTHER_GANG = "ReservedByOtherGang"
    PREVIOUS_ATTEMPT_FAILED = "PreviousAttemptFailed"
    SOLVER_GAVE_UP = "SolverGaveUp"
    RELEASED_IN_PART = "ReleasedInPart"
    IMEX_CHANNEL_BUSY = "ImexChannelBusy"
    VOLUME_NOT_BOUND = "VolumeNotBound"
    CLAIM_NOT_ALLOCATED = "ClaimNotAllocated"
    SCHEDULER_MESSAGE = "SchedulerMessage"
    NODE_HELD_BY_OTHER_DOMAIN = "NodeHeldByOtherDomain"
    COMPUTE_DOMAIN_NOT_READY = "ComputeDomainNotReady"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CONTAINER_NOT_CREATED = "ContainerNotCreated"
    CONTAINER_CRASHING = "ContainerCrashing"
    POD_FAILED = "PodFailed"
    TERMINATION_BUDGET_SPENT = "TerminationBudgetSpent"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    UPDATE_PAUSED = "UpdatePaused"
    TOPOLOGY_LEVELS_UNAVAILABLE = "TopologyLevelsUnavailable"
    INIT_CONTAINER_WAITS = "InitContainerWaitsForClique"
    BASE_GANG_NOT_SCHEDULED = "BaseGangNotScheduled"


MOMENTARY = frozenset(
    {
        ReasonCode.WRITE_FAILED,
        ReasonCode.WRITES_SLOW,
        ReasonCode.NODES_NOT_LISTED,
        ReasonCode.RESERVED_BY_OTHER_GANG,
        ReasonCode.PREVIOUS_ATTEMPT_FAILED,
        ReasonCode.SOLVER_GAVE_UP,
        ReasonCode.CLAIM_NOT_ALLOCATED,
        ReasonCode.SCHEDULER_MESSAGE,
        ReasonCode.COMPUTE_DOMAIN_NOT_READY,
        ReasonCode.INIT_CONTAINER_WAITS,
        ReasonCode.BASE_GANG_NOT_SCHEDULED,
    }
)
"""Reasons that are usual for a moment: in a healthy start, or while gangs compete."""
ALTERNATING = frozenset(
    {
        ReasonCode.INSUFFICIENT_RESOURCES,
        ReasonCode.DOMAIN_FRAGMENTED,
        ReasonCode.RESERVED_BY_OTHER_GANG,
        ReasonCode.PREVIOUS_ATTEMPT_FAILED,
        ReasonCode.SOLVER_GAVE_UP,
        ReasonCode.SCHEDULER_MESSAGE,
    }
)
"""Reasons of one gang that replace each other all the time while gangs compete for nodes."""
_RANKS = {code: rank for rank, code in enumerate(ReasonCode)}


def rank(code: ReasonCode) -> int:
    """The position of a code among all; the smallest is shown first."""
    return _RANKS[code]
