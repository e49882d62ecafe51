"""What each code says, and what helps against it in general."""

from __future__ import annotations

from collections.abc import Mapping

from grove.reasons.codes import ReasonCode as Code

_TEXTS: Mapping[Code, tuple[str, str]] = {
    Code.NO_OPERATOR_LEADING: (
        "no operator leads, so nothing is created or changed",
        "start the operator, or see why it cannot hold its lease",
    ),
    Code.NAMESPACE_TERMINATING: (
        "the namespace is being deleted, and accepts no new objects",
        "create the workload in another namespace",
    ),
    Code.DECODE_FAILED: (
        "an object of the set cannot be decoded",
        "correct the field that the message names, or delete the object",
    ),
    Code.PLAN_FAILED: (
        "no plan can be computed for a replica",
        "correct the template that the message names, or report it with the operator's log",
    ),
    Code.POD_LIMIT_EXCEEDED: (
        "the set asks for more pods than the operator allows",
        "scale the set in, or raise limits.podsPerSet of the operator's configuration",
    ),
    Code.GANG_SIZE_EXCEEDED: (
        "a PodGang would be larger than the API server can store",
        "scale cliques in, or lower minAvailable of groups",
    ),
    Code.NAME_CONFLICT: (
        "another object has the name of one that is needed",
        "rename the set or its domain; delete that object only if it belongs to no other set",
    ),
    Code.OPERATOR_FORBIDDEN: (
        "the operator has no right to write an object",
        "compare the operator's ClusterRole with docs/rights.md",
    ),
    Code.WEBHOOK_UNAVAILABLE: (
        "an admission webhook does not answer",
        "repair the webhook that the message names, or delete its configuration",
    ),
    Code.QUOTA_EXCEEDED: (
        "a ResourceQuota of the namespace is used up",
        "raise the quota, or delete other workloads of the namespace",
    ),
    Code.ADMISSION_REFUSED: (
        "the API server refuses an object",
        "correct what the message names in the template, or the policy that refuses it",
    ),
    Code.WRITE_FAILED: (
        "an object cannot be written",
        "do what the message says; the operator tries again by itself",
    ),
    Code.WRITES_SLOW: (
        "writes take long or get no answer",
        "check admission webhooks and the API server",
    ),
    Code.INIT_IMAGE_MISSING: (
        "the set has a startup order, and the operator has no image for the init container",
        "set initContainer.image of the chart",
    ),
    Code.START_ORDER_DISABLED: (
        "the set has a start order, and start orders are disabled on this operator",
        "set config.startOrder.enabled of the chart, or create the set again without a start order",
    ),
    Code.SCHEDULER_NOT_CONFIGURED: (
        "the operator's configuration does not list the scheduler of the pods",
        "list it in scheduler.profiles, or create the set again with another scheduler",
    ),
    Code.SCHEDULER_OBJECT_FAILED: (
        "the scheduler's object for the gang cannot be written",
        "do what the message says; see ERR_SYNC_PODGROUP in docs/troubleshooting.md",
    ),
    Code.CONSTRAINTS_DROPPED: (
        "the API server stored the PodGroup without its topology constraint",
        "switch on the feature gate TopologyAwareWorkloadScheduling, or let the operator place gangs",
    ),
    Code.CLAIM_MISSING: (
        "a claim or a template that the pods refer to does not exist",
        "create it",
    ),
    Code.COMPUTE_DOMAIN_CRD_MISSING: (
        "the driver of the fabric is not installed",
        "install NVIDIA's DRA driver",
    ),
    Code.COMPUTE_DOMAIN_CRD_OUTDATED: (
        "the driver of the fabric serves only versions of its domains that the operator does not use",
        "install a current version of the driver",
    ),
    Code.COMPUTE_DOMAIN_CONFLICT: (
        "another object has the name of the fabric domain or of its claim template",
        "delete or rename that object, or rename the set",
    ),
    Code.COMPUTE_DOMAIN_TERMINATING: (
        "a fabric domain that pods need is being deleted",
        "annotate it with grove.io/recreate=true to restart its pods and create it again",
    ),
    Code.COMPUTE_DOMAIN_FAILED: (
        "the fabric domain cannot be created",
        "do what the message says; see ERR_SYNC_COMPUTEDOMAIN in docs/troubleshooting.md",
    ),
    Code.CLAIM_NOT_CREATED: (
        "the driver has not created the claim template of the fabric domain",
        "see the log of the driver's controller",
    ),
    Code.USER_SCHEDULING_GATE: (
        "pods have scheduling gates that the operator does not own",
        "remove the gate, or see why its controller does not",
    ),
    Code.NODES_NOT_LISTED: (
        "the operator cannot list what placement depends on",
        "give it the rights of docs/rights.md, or switch placement off",
    ),
    Code.TOPOLOGY_LABEL_MISSING: (
        "no node has the label of a required level",
        "label nodes, or correct the level",
    ),
    Code.AFFINITY_CONTRADICTION: (
        "node selector and node affinity of the pods exclude each other",
        "correct the pod template",
    ),
    Code.ONE_MEMBER_POD_PER_NODE: (
        "the gang has more pods in fabric domains than nodes have a channel",
        "use fewer pods with more accelerators each, or add nodes",
    ),
    Code.GANG_TOO_LARGE: (
        "the gang does not fit even if all other pods were gone",
        "lower replicas, minAvailable or requests, use a wider level, or add nodes",
    ),
    Code.BOUND_ELSEWHERE: (
        "pods of the gang already run in another domain",
        "delete these pods, so that the gang is placed again as a whole",
    ),
    Code.NODE_NOT_READY: (
        "nodes are not ready",
        "repair or replace these nodes",
    ),
    Code.NODE_CORDONED: (
        "nodes are cordoned",
        "kubectl uncordon them, or add nodes",
    ),
    Code.NODE_TAINT: (
        "nodes have a taint that the pods do not tolerate",
        "add a toleration to the pod template, or remove the taint",
    ),
    Code.NODE_SELECTOR_MISMATCH: (
        "no node matches node selector or node affinity of the pods",
        "correct the selector in the pod template, or label nodes",
    ),
    Code.INSUFFICIENT_RESOURCES: (
        "nodes have too little free",
        "add nodes, delete other workloads, or lower requests",
    ),
    Code.DOMAIN_FRAGMENTED: (
        "there is enough in total, and too little in one place",
        "drain or move pods, use a wider level, or add nodes",
    ),
    Code.RESERVED_BY_OTHER_GANG: (
        "what is free is reserved for gangs that came first",
        "wait until they are bound, add nodes, or raise the priority",
    ),
    Code.PREVIOUS_ATTEMPT_FAILED: (
        "an earlier attempt in the domain failed, and is not repeated at once",
        "wait; see the events of the gang's pods for the cause",
    ),
    Code.SOLVER_GAVE_UP: (
        "the search for nodes was stopped at its limit of work",
        "wait, it is repeated; simpler constraints make it faster",
    ),
    Code.RELEASED_IN_PART: (
        "there is no place for all pods of the gang, and those that fit may start one by one",
        "add nodes; visibleAfter: Never keeps such gangs waiting together",
    ),
    Code.IMEX_CHANNEL_BUSY: (
        "the fabric channels of the nodes are held by other domains",
        "scale in the sets that hold them, or add nodes",
    ),
    Code.VOLUME_NOT_BOUND: (
        "a volume of the pods is not bound, or not reachable from the nodes",
        "see kubectl describe pvc",
    ),
    Code.CLAIM_NOT_ALLOCATED: (
        "the devices that the pods claim cannot be allocated",
        "see kubectl describe resourceclaim, or free devices",
    ),
    Code.SCHEDULER_MESSAGE: (
        "the scheduler found no nodes",
        "the message is the scheduler's own",
    ),
    Code.NODE_HELD_BY_OTHER_DOMAIN: (
        "the node of a pod is labelled for another fabric domain, so the pod cannot start on it",
        "if that domain is gone, remove the label; else delete the pod",
    ),
    Code.COMPUTE_DOMAIN_NOT_READY: (
        "the fabric domain is not ready",
        "see kubectl describe computedomain, and the driver's pods on its nodes",
    ),
    Code.IMAGE_PULL_FAILED: (
        "an image cannot be pulled",
        "correct the image, its registry or imagePullSecrets",
    ),
    Code.CONTAINER_NOT_CREATED: (
        "a container cannot be created",
        "create the ConfigMap or Secret, or correct the container that kubectl describe pod names",
    ),
    Code.CONTAINER_CRASHING: (
        "a container ends again and again",
        "see kubectl logs --previous",
    ),
    Code.POD_FAILED: (
        "a pod has ended, and is replaced after a pause",
        "see kubectl logs and kubectl describe of the pod",
    ),
    Code.TERMINATION_BUDGET_SPENT: (
        "the gang was restarted too often without becoming ready, and is not restarted any more",
        "correct its pods, or remove annotation grove.io/terminations of the PodGang",
    ),
    Code.PROGRESS_DEADLINE_EXCEEDED: (
        "an update made no progress within its deadline",
        "correct the template, or set it back",
    ),
    Code.UPDATE_PAUSED: (
        "an update is paused",
        "set spec.updateStrategy.paused to false",
    ),
    Code.TOPOLOGY_LEVELS_UNAVAILABLE: (
        "levels of the topology are missing, and pods are placed without them",
        "add the levels to the ClusterTopology",
    ),
    Code.INIT_CONTAINER_WAITS: (
        "pods start after those of another clique, which are not ready",
        "see why that clique is not ready",
    ),
    Code.BASE_GANG_NOT_SCHEDULED: (
        "the base gang of the replica is scheduled first",
        "see why the base gang waits",
    ),
}  # fmt: skip

SUMMARIES = {code: summary for code, (summary, _) in _TEXTS.items()}
REMEDIES = {code: remedy for code, (_, remedy) in _TEXTS.items()}
