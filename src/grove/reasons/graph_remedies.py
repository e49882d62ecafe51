"""What helps where a set is rendered from a DynamoGraphDeployment: its user changes the deployment, and what
is set on the PodCliqueSet is set back. Only the remedies that differ from those of a set."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.naming.external_keys import DYNAMO_GROUP, DYNAMO_KIND
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.model import WaitReason
from grove.reasons.texts import REMEDIES

GRAPH_REMEDIES: Mapping[Code, str] = {
    Code.PLAN_FAILED: "correct the component that the message names, or report it with the operator's log",
    Code.POD_LIMIT_EXCEEDED: (
        "lower replicas of components, or raise limits.podsPerSet of the operator's configuration"
    ),
    Code.GANG_SIZE_EXCEEDED: "lower replicas of components without multinode, or split the deployment",
    Code.NAME_CONFLICT: "delete that object if nothing needs it, or create the deployment with another name",
    Code.ADMISSION_REFUSED: (
        "create what the message names, correct it in the component's pod template, or change the policy"
    ),
    Code.START_ORDER_DISABLED: (
        "set config.startOrder.enabled of the chart: TensorRT-LLM on several nodes has a start order"
    ),
    Code.SCHEDULER_NOT_CONFIGURED: (
        "list it in scheduler.profiles, or create the deployment again with another schedulerName"
    ),
    Code.COMPUTE_DOMAIN_CONFLICT: "delete that object, or create the deployment with another name",
    Code.AFFINITY_CONTRADICTION: "correct the component's pod template",
    Code.GANG_TOO_LARGE: (
        "lower requests, add nodes, or create the deployment again with wider packDomain or smaller nodeCount"
    ),
    Code.NODE_TAINT: "add a toleration to the component's pod template, or remove the taint",
    Code.NODE_SELECTOR_MISMATCH: "correct the selector in the component's pod template, or label nodes",
    Code.DOMAIN_FRAGMENTED: (
        "drain or move pods, add nodes, or create the deployment again with a wider packDomain"
    ),
    Code.RESERVED_BY_OTHER_GANG: "wait until they are bound, add nodes, or set spec.priorityClassName",
    Code.IMEX_CHANNEL_BUSY: "lower replicas of the deployments that hold them, or add nodes",
    Code.IMAGE_PULL_FAILED: "correct the component's image or its registry, or create an image pull Secret",
    Code.CONTAINER_NOT_CREATED: (
        "create the ConfigMap or Secret, or correct the component that kubectl describe pod shows"
    ),
    Code.PROGRESS_DEADLINE_EXCEEDED: "correct the component, or set it back",
    Code.UPDATE_PAUSED: "set spec.updateStrategy.paused of the PodCliqueSet to false",
}


def adapted_to(workload: ObjectMeta) -> Callable[[WaitReason], WaitReason]:
    """The function that gives reasons the remedies of the object from which a set is rendered."""
    return _for_graph if is_rendered(workload) else lambda reason: reason


def remedy_in(line: str, code: Code) -> str:
    """The general remedy with which a line about a code ends; empty if it ends with a special one."""
    known = (REMEDIES[code], GRAPH_REMEDIES.get(code, ""))
    return next((each for each in known if each and line.endswith(f"; {each}")), "")


def is_rendered(workload: ObjectMeta) -> bool:
    """Whether a set is rendered from a DynamoGraphDeployment."""
    return any(
        owner.controller and (owner.api_version.partition("/")[0], owner.kind) == (DYNAMO_GROUP, DYNAMO_KIND)
        for owner in workload.owner_references
    )


def _for_graph(reason: WaitReason) -> WaitReason:
    remedy = GRAPH_REMEDIES.get(reason.code, "")
    return replace(reason, remedy=remedy) if remedy and not reason.remedy else reason
