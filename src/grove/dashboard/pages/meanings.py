"""What each event reason and condition type of the operator is part of: one closed table. Data only."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from grove.api.conditions import ComputeDomainsReason, ConditionType, TopologyLevelsReason
from grove.api.event_reasons import EventReason
from grove.dashboard.pages.model import TimelineKind as Kind
from grove.reasons.codes import ReasonCode

E, R, C = EventReason, ReasonCode, ConditionType


class Meaning(Struct, frozen=True):
    """What an event is part of."""

    kind: Kind
    follows: bool = False
    """Whether it is part of the rollout, recovery or scaling in which it happens; `kind` is then that of a
    first start."""


class ConditionMeaning(Struct, frozen=True):
    """What a condition is part of. A status without a title is not shown: it says that nothing is wrong."""

    kind: Kind
    titles: Mapping[str, str] = {}
    """By status."""
    problems: frozenset[str] = frozenset()
    """The statuses that are warnings."""
    follows: bool = False
    completes: int = 0
    """Which step of a start it completes if it is True: they are sorted by it within a second."""


_FOLLOWING = Meaning(Kind.START, follows=True)
_ROLLOUT, _RECOVERY = Meaning(Kind.ROLLOUT), Meaning(Kind.RECOVERY)
_SCALING, _PLACEMENT, _OTHER = Meaning(Kind.SCALING), Meaning(Kind.PLACEMENT), Meaning(Kind.OTHER)

OF_EVENTS: Mapping[str, Meaning] = {
    E.CLIQUE_WRITE_FAILED: _OTHER,
    E.CLIQUE_DELETED: _SCALING,
    E.CLIQUE_DELETE_FAILED: _OTHER,
    E.GROUP_WRITE_FAILED: _OTHER,
    E.GROUP_DELETED: _SCALING,
    E.GROUP_DELETE_FAILED: _OTHER,
    E.GROUP_REPLICA_DELETED: _RECOVERY,
    E.SET_REPLICA_DELETED: _RECOVERY,
    E.GANG_WRITE_FAILED: _OTHER,
    E.GANG_DELETED: _SCALING,
    E.GANG_DELETE_FAILED: _OTHER,
    E.POD_CREATED: Meaning(Kind.RECOVERY, follows=True),
    E.POD_CREATE_FAILED: _OTHER,
    E.POD_DELETED: Meaning(Kind.SCALING, follows=True),
    E.POD_DELETE_FAILED: _OTHER,
    E.UPDATE_STARTED: _ROLLOUT,
    E.REPLICA_UPDATED: _ROLLOUT,
    E.UPDATE_FINISHED: _ROLLOUT,
    E.RECOVERED: _RECOVERY,
    E.ALL_SCHEDULED_LOST: _RECOVERY,
    E.CONSTRAINTS_ENFORCED: _PLACEMENT,
    E.CONSTRAINTS_NOT_ENFORCED: _PLACEMENT,
    E.TOPOLOGY_LEVELS_AVAILABLE: _PLACEMENT,
    E.TOPOLOGY_LEVELS_UNAVAILABLE: _PLACEMENT,
    E.TOPOLOGY_LEVELS_INVERTED: _PLACEMENT,
    E.TOPOLOGY_DRIFT: _PLACEMENT,
    E.TOPOLOGY_IN_SYNC: _PLACEMENT,
    E.SCHEDULER_SYNC_FAILED: _PLACEMENT,
    E.KAI_MAPPING_FAILED: _PLACEMENT,
    E.VOLCANO_UNAVAILABLE: _PLACEMENT,
    E.RELEASED_IN_PART: _PLACEMENT,
    E.POD_LIMIT_EXCEEDED: _SCALING,
    E.COMPUTE_DOMAIN_CREATED: _FOLLOWING,
    E.COMPUTE_DOMAIN_FAILED: _PLACEMENT,
    E.COMPUTE_DOMAIN_DELETED: _SCALING,
    E.COMPUTE_DOMAIN_DELETE_FAILED: _OTHER,
    E.COMPUTE_DOMAIN_TERMINATING: _RECOVERY,
    E.COMPUTE_DOMAIN_RECREATING: _RECOVERY,
    E.COMPUTE_DOMAIN_REFERENCED: _OTHER,
    E.COMPUTE_DOMAIN_JOINED: _FOLLOWING,
    E.COMPUTE_DOMAIN_DEGRADED: _RECOVERY,
    E.COMPUTE_DOMAIN_RECOVERED: _RECOVERY,
    E.COMPUTE_DOMAIN_CONFLICT: _PLACEMENT,
    E.IMEX_CHANNEL_BUSY: _PLACEMENT,
    E.FABRIC_SPLIT: _PLACEMENT,
    E.SET_INVALID: _OTHER,
    E.DECODE_FAILED: _OTHER,
    # Why pods wait: events of PodGangs and graphs with the code as their reason.
    R.NO_OPERATOR_LEADING: _OTHER,
    R.NAMESPACE_TERMINATING: _OTHER,
    R.PLAN_FAILED: _OTHER,
    R.GANG_SIZE_EXCEEDED: _SCALING,
    R.NAME_CONFLICT: _OTHER,
    R.OPERATOR_FORBIDDEN: _OTHER,
    R.WEBHOOK_UNAVAILABLE: _OTHER,
    R.QUOTA_EXCEEDED: _OTHER,
    R.ADMISSION_REFUSED: _OTHER,
    R.WRITE_FAILED: _OTHER,
    R.WRITES_SLOW: _OTHER,
    R.INIT_IMAGE_MISSING: _FOLLOWING,
    R.START_ORDER_DISABLED: _FOLLOWING,
    R.SCHEDULER_NOT_CONFIGURED: _PLACEMENT,
    R.SCHEDULER_OBJECT_FAILED: _PLACEMENT,
    R.CONSTRAINTS_DROPPED: _PLACEMENT,
    R.CLAIM_MISSING: _PLACEMENT,
    R.COMPUTE_DOMAIN_CRD_MISSING: _PLACEMENT,
    R.COMPUTE_DOMAIN_CRD_OUTDATED: _PLACEMENT,
    R.CLAIM_NOT_CREATED: _PLACEMENT,
    R.USER_SCHEDULING_GATE: _PLACEMENT,
    R.NODES_NOT_LISTED: _PLACEMENT,
    R.TOPOLOGY_LABEL_MISSING: _PLACEMENT,
    R.AFFINITY_CONTRADICTION: _PLACEMENT,
    R.ONE_MEMBER_POD_PER_NODE: _PLACEMENT,
    R.GANG_TOO_LARGE: _PLACEMENT,
    R.BOUND_ELSEWHERE: _PLACEMENT,
    R.NODE_NOT_READY: _PLACEMENT,
    R.NODE_CORDONED: _PLACEMENT,
    R.NODE_TAINT: _PLACEMENT,
    R.NODE_SELECTOR_MISMATCH: _PLACEMENT,
    R.INSUFFICIENT_RESOURCES: _PLACEMENT,
    R.DOMAIN_FRAGMENTED: _PLACEMENT,
    R.RESERVED_BY_OTHER_GANG: _PLACEMENT,
    R.PREVIOUS_ATTEMPT_FAILED: _PLACEMENT,
    R.SOLVER_GAVE_UP: _PLACEMENT,
    R.VOLUME_NOT_BOUND: _PLACEMENT,
    R.CLAIM_NOT_ALLOCATED: _PLACEMENT,
    R.SCHEDULER_MESSAGE: _PLACEMENT,
    R.NODE_HELD_BY_OTHER_DOMAIN: _PLACEMENT,
    R.COMPUTE_DOMAIN_NOT_READY: _FOLLOWING,
    R.IMAGE_PULL_FAILED: _FOLLOWING,
    R.CONTAINER_NOT_CREATED: _FOLLOWING,
    R.CONTAINER_CRASHING: _RECOVERY,
    R.POD_FAILED: _RECOVERY,
    R.TERMINATION_BUDGET_SPENT: _RECOVERY,
    R.PROGRESS_DEADLINE_EXCEEDED: _ROLLOUT,
    R.UPDATE_PAUSED: _ROLLOUT,
    R.INIT_CONTAINER_WAITS: _FOLLOWING,
    R.BASE_GANG_NOT_SCHEDULED: _PLACEMENT,
    # Of DynamoGraphDeployments, which repeat what the conditions of their sets say.
    **dict.fromkeys(TopologyLevelsReason, _PLACEMENT),
    "TopologyConstraintsApplied": _PLACEMENT,
    "TopologyDefinitionNotFound": _PLACEMENT,
    "Scaled": _SCALING,
    "ReconcileFailed": _OTHER,
    "WorkloadNotAdmitted": _PLACEMENT,
}
"""By reason, of all events that the operator emits. The test of this table finds reasons that are missing."""

OF_OTHERS: Mapping[str, Meaning] = {
    "Scheduled": _PLACEMENT,
    "FailedScheduling": _PLACEMENT,
    "WaitingOnCreation": _PLACEMENT,
    "NotTriggerScaleUp": _PLACEMENT,
    "TriggeredScaleUp": _PLACEMENT,
    "Pulling": _FOLLOWING,
    "Pulled": _FOLLOWING,
    "Created": _FOLLOWING,
    "Started": _FOLLOWING,
    "Killing": _FOLLOWING,
    "Failed": _FOLLOWING,
    "BackOff": _RECOVERY,
    "Unhealthy": _RECOVERY,
    "Preempted": _RECOVERY,
    "PreemptedByScheduler": _RECOVERY,
    "Evicted": _RECOVERY,
    "NodeNotReady": _RECOVERY,
    "TaintManagerEviction": _RECOVERY,
    "NodeShutdown": _RECOVERY,
    "SuccessfulRescale": _SCALING,
}
"""Of Kubernetes' own components; everything else is `other`."""

_TRUE, _FALSE, _UNKNOWN = "True", "False", "Unknown"
OF_CONDITIONS: Mapping[ConditionType, ConditionMeaning] = {
    C.CLIQUE_SCHEDULED: ConditionMeaning(Kind.PLACEMENT, {_TRUE: "Pods scheduled"}, completes=2),
    C.WAS_SCHEDULED: ConditionMeaning(Kind.PLACEMENT, {_TRUE: "Pods scheduled"}, completes=2),
    C.MIN_AVAILABLE_BREACHED: ConditionMeaning(
        Kind.RECOVERY, {_TRUE: "Below minAvailable"}, frozenset({_TRUE})
    ),
    C.GANG_TERMINATION_IN_PROGRESS: ConditionMeaning(
        Kind.RECOVERY, {_TRUE: "Gang termination"}, frozenset({_TRUE})
    ),
    C.UPDATE_IN_PROGRESS: ConditionMeaning(
        Kind.ROLLOUT, {_TRUE: "Update in progress", _UNKNOWN: "Update is late"}, frozenset({_UNKNOWN})
    ),
    C.TOPOLOGY_LEVELS_UNAVAILABLE: ConditionMeaning(
        Kind.PLACEMENT, {_TRUE: "Topology levels unavailable"}, frozenset({_TRUE})
    ),
    C.CONSTRAINTS_ENFORCED: ConditionMeaning(
        Kind.PLACEMENT,
        {_TRUE: "Constraints enforced", _FALSE: "Constraints not enforced"},
        frozenset({_FALSE}),
    ),
    C.SCHEDULER_TOPOLOGY_DRIFT: ConditionMeaning(Kind.PLACEMENT),  # of topologies only
    C.SHADOWED: ConditionMeaning(Kind.PLACEMENT),  # of topologies only
    C.COMPUTE_DOMAINS_READY: ConditionMeaning(
        Kind.PLACEMENT, {_TRUE: "ComputeDomains ready", _FALSE: "ComputeDomains not ready"}
    ),
    C.INITIALIZED: ConditionMeaning(
        Kind.START, {_TRUE: "Pods created", _FALSE: "Pods are being created"}, follows=True, completes=1
    ),
    C.SCHEDULED: ConditionMeaning(Kind.PLACEMENT, {_TRUE: "Scheduled", _FALSE: "Not scheduled"}, completes=3),
    C.READY: ConditionMeaning(Kind.START, {_TRUE: "Ready", _FALSE: "Not ready"}, follows=True, completes=4),
    C.UNHEALTHY: ConditionMeaning(Kind.RECOVERY, {_TRUE: "Unhealthy"}, frozenset({_TRUE})),
    C.PLACEMENT_UNPROTECTED: ConditionMeaning(
        Kind.PLACEMENT, {_TRUE: "Placement unprotected"}, frozenset({_TRUE})
    ),
    C.WAITING: ConditionMeaning(Kind.OTHER, {_TRUE: "Waits since then"}, frozenset({_TRUE})),
}
"""Of all conditions that the operator writes. The kind of `Waiting` is that of its code, as of events."""

_D = ComputeDomainsReason
SAME_AS_EVENT: Mapping[tuple[ConditionType, str], EventReason] = {
    (C.TOPOLOGY_LEVELS_UNAVAILABLE, _TRUE): E.TOPOLOGY_LEVELS_UNAVAILABLE,
    (C.CONSTRAINTS_ENFORCED, _TRUE): E.CONSTRAINTS_ENFORCED,
    (C.CONSTRAINTS_ENFORCED, _FALSE): E.CONSTRAINTS_NOT_ENFORCED,
    (C.UPDATE_IN_PROGRESS, _TRUE): E.UPDATE_STARTED,
    (C.COMPUTE_DOMAINS_READY, _D.DEGRADED): E.COMPUTE_DOMAIN_DEGRADED,
    (C.COMPUTE_DOMAINS_READY, _D.ALL_READY): E.COMPUTE_DOMAIN_RECOVERED,
    (C.COMPUTE_DOMAINS_READY, _D.FABRIC_SPLIT): E.FABRIC_SPLIT,
    (C.COMPUTE_DOMAINS_READY, _D.CHANNEL_BUSY): E.IMEX_CHANNEL_BUSY,
    (C.COMPUTE_DOMAINS_READY, _D.TERMINATING): E.COMPUTE_DOMAIN_TERMINATING,
    (C.COMPUTE_DOMAINS_READY, _D.RECREATED): E.COMPUTE_DOMAIN_RECREATING,
    (C.COMPUTE_DOMAINS_READY, _D.CREATE_FAILED): E.COMPUTE_DOMAIN_FAILED,
    (C.COMPUTE_DOMAINS_READY, _D.NAME_CONFLICT): E.COMPUTE_DOMAIN_CONFLICT,
}
"""By type of a condition and its status or reason, the event that says the same."""
