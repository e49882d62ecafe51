"""Causes for which pods wait, each in a namespace of its own: what exists, the set, and the code that is
expected first. `grove explain` is tested with the same table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grove.kube.client.resource import (
    PERSISTENT_VOLUME_CLAIMS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SERVICES,
    Resource,
)
from grove.reasons.codes import ReasonCode as Code
from tests.cluster.operator.support.workloads import Body, clique, group, workload

GPU = "nvidia.com/gpu"
CAUSE = "example.com/cause"
"""The label of the nodes of a cause, which its pods select."""
RACK = "example.com/cause-rack"
TOPOLOGY, MISSING_TOPOLOGY = "causes", "causes-missing"
"""Topologies with the levels `rack` and `host`: one whose labels nodes have, and one whose labels they have
not."""
SLOW_START = {"pod-ready.grove.local/delay": "1h"}
"""The annotation of pods that are bound and do not become ready by themselves."""
LIMITS = Resource("", "v1", "limitranges", "LimitRange")
NAME = "w"


@dataclass(frozen=True)
class CauseNode:
    """A node that exists for one cause only."""

    gpus: int = 8
    rack: str = ""
    spec: Body = field(default_factory=dict)
    lost: bool = False
    pods: int = 110
    used: int = 0
    """GPUs that a pod of another namespace uses."""
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cause:
    """A cause, and the code that follows."""

    name: str
    code: Code
    body: Body
    nodes: tuple[CauseNode, ...] = (CauseNode(), CauseNode())
    objects: tuple[tuple[Resource, Body], ...] = ()
    """What exists in the namespace before the set."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    pod_statuses: Mapping[str, Body] = field(default_factory=dict)
    """By clique, the status that the kubelet reports of its pods once they are bound."""
    gang: str | None = f"{NAME}-0"
    """The gang that has the code; None if there is no gang."""
    of_gang: Code | None = None
    """The code of the gang, if it has another one than the set."""
    course: Callable[..., Awaitable[None]] | None = None
    """What happens once the set is created; called with all that is seeded and the cause."""
    passing: bool = False
    """Whether another code follows after seconds: then it is enough that this one was seen."""

    @property
    def expected_of_gang(self) -> Code:
        return self.of_gang or self.code


def container(**more: Any) -> Body:
    return {"name": "main", "image": "model:1", **more}


def pods(count: int = 2, gpus: int = 8, **pod: Any) -> Body:
    """A set of one clique, whose pods use GPUs of the nodes of the cause."""
    limits = {"resources": {"limits": {GPU: str(gpus)}}} if gpus else {}
    spec = {"containers": [container(**limits)], **pod}
    return workload(NAME, clique("a", count, pod=spec))


def one(gpus: int = 8, **pod: Any) -> Body:
    """A set of one pod, which Kubernetes' scheduler places by itself."""
    return pods(1, gpus, **pod)


def constrained(level: str, body: Body, topology: str = TOPOLOGY) -> Body:
    body["spec"]["template"]["topologyConstraint"] = {"topologyName": topology, "pack": {"required": level}}
    return body


def hosts_of_cliques(*names: str) -> Body:
    """Cliques of two pods with 4 GPUs, each clique on one host."""
    spec = {"containers": [container(resources={"limits": {GPU: "4"}})]}
    cliques = [clique(name, 2, pod=spec) for name in names]
    for each in cliques:
        each["topologyConstraint"] = {"topologyName": TOPOLOGY, "pack": {"required": "host"}}
    return workload(NAME, *cliques)


def starting(*names: str, after: str = "", **pod: Any) -> Body:
    """Cliques whose pods do not become ready by themselves; the last starts after another one."""
    cliques = [clique(name, 1, pod=pod, annotations=SLOW_START) for name in names]
    if after:
        cliques[-1]["spec"]["startsAfter"] = [after]
    body = workload(NAME, *cliques)
    if after:
        body["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeExplicit"
    return body


def reported(state: Body, kind: str = "containerStatuses", name: str = "main", **more: Any) -> Body:
    """The status of a pod with a container in this state."""
    known = {"name": name, "image": "model:1", "imageID": "", "ready": False, "restartCount": 1}
    return {"phase": "Pending", kind: [{**known, "state": state, **more}]}


def waiting(reason: str, **more: Any) -> Body:
    return reported({"waiting": {"reason": reason, "message": "as the kubelet says"}}, **more)


def quota(hard: Mapping[str, str], used: Mapping[str, str]) -> tuple[Resource, Body]:
    """A quota that counts at once: no controller has to fill in its status."""
    status = {"hard": dict(hard), "used": dict(used)}
    return RESOURCE_QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": dict(hard)}, "status": status}


def taint(key: str = "example.com/maintenance") -> Body:
    return {"taints": [{"key": key, "effect": "NoSchedule"}]}


def volume(claim: str) -> Body:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


def claimed(**source: str) -> Body:
    resources = {"limits": {}, "claims": [{"name": "c"}]}
    return {"containers": [container(resources=resources)], "resourceClaims": [{"name": "c", **source}]}


CORDONED: Body = {"unschedulable": True}
FULL = CauseNode(used=8)
UNBOUND = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "no-such-class",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
NO_SUCH_CLASS = {
    "metadata": {"name": "claim"},
    "spec": {
        "devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "no-such-class.example.com"}}]
        }
    },
}
CRASHED = {"lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}
KILLED = {"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
RUNNING: Body = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
AFFINITY_NOT_MET = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"no": "such-pod"}}}
        ]
    }
}
SELECTOR_CONTRADICTED = {
    "nodeSelector": {"example.com/pool": "a"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "example.com/pool", "operator": "In", "values": ["b"]}]}
                ]
            }
        }
    },
}
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "no-such-label",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {},
        }
    ]
}
FOREIGN_SERVICE = {"metadata": {"name": f"{NAME}-0"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}}}
LIMIT = {"metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}}
LARGE = {"containers": [container(resources={"limits": {"memory": "2Gi"}})]}
SCALED = workload(
    NAME,
    clique("a", 2, pod={"containers": [container(resources={"limits": {GPU: "8"}})]}),
    groups=(group("g", 2, 1, "a"),),
)

OF_PLACEMENT = (
    Cause("nodes-full", Code.INSUFFICIENT_RESOURCES, pods(), (FULL, FULL)),
    Cause("one-node-full", Code.INSUFFICIENT_RESOURCES, pods(), (FULL, CauseNode())),
    Cause("no-such-resource", Code.INSUFFICIENT_RESOURCES, pods(gpus=0, containers=[container(
        resources={"limits": {"example.com/none": "1"}})])),
    Cause("cpu-short", Code.GANG_TOO_LARGE, pods(gpus=0, containers=[container(
        resources={"requests": {"cpu": "9"}})])),
    Cause("pods-short", Code.GANG_TOO_LARGE, pods(3, gpus=1), (CauseNode(pods=1), CauseNode(pods=1))),
    Cause("gang-too-large", Code.GANG_TOO_LARGE, pods(3)),
    Cause("pod-too-large", Code.GANG_TOO_LARGE, pods(2, gpus=9)),
    Cause("one-cordoned", Code.NODE_CORDONED, pods(), (CauseNode(spec=CORDONED), CauseNode())),
    Cause("all-cordoned", Code.NODE_CORDONED, pods(), (CauseNode(spec=CORDONED), CauseNode(spec=CORDONED))),
    Cause("one-lost", Code.NODE_NOT_READY, pods(), (CauseNode(lost=True), CauseNode())),
    Cause("one-tainted", Code.NODE_TAINT, pods(), (CauseNode(spec=taint()), CauseNode())),
    Cause("all-tainted", Code.NODE_TAINT, pods(), (CauseNode(spec=taint()), CauseNode(spec=taint()))),
    Cause("tainted-and-full", Code.INSUFFICIENT_RESOURCES, pods(),
          (CauseNode(spec=taint()), FULL, CauseNode())),
    Cause("nothing-selected", Code.NODE_SELECTOR_MISMATCH, pods(nodeSelector={"example.com/pool": "none"})),
    Cause("too-few-selected", Code.GANG_TOO_LARGE, pods(nodeSelector={RACK: "r1"}),
          (CauseNode(rack="r1"), CauseNode(rack="r2"))),
    Cause("contradiction", Code.AFFINITY_CONTRADICTION, pods(**SELECTOR_CONTRADICTED)),
    Cause("label-missing", Code.TOPOLOGY_LABEL_MISSING, constrained("rack", pods(), MISSING_TOPOLOGY)),
    Cause("racks-too-small", Code.GANG_TOO_LARGE, constrained("rack", pods()),
          (CauseNode(rack="r1"), CauseNode(rack="r2"))),
    Cause("racks-full", Code.INSUFFICIENT_RESOURCES, constrained("rack", pods()),
          (CauseNode(rack="r1"), CauseNode(rack="r1", used=8), CauseNode(rack="r2"),
           CauseNode(rack="r2", used=4))),
    Cause("rack-cordoned", Code.NODE_CORDONED, constrained("rack", pods()),
          (CauseNode(rack="r1", spec=CORDONED), CauseNode(rack="r1"))),
    Cause("host-of-a-clique", Code.DOMAIN_FRAGMENTED, hosts_of_cliques("a", "b"),
          (CauseNode(rack="r9", used=4), CauseNode(rack="r9"))),
    Cause("template-missing", Code.CLAIM_MISSING,
          pods(gpus=0, **claimed(resourceClaimTemplateName="no-such-template"))),
    Cause("claim-missing", Code.CLAIM_MISSING, pods(gpus=0, **claimed(resourceClaimName="no-such-claim"))),
    Cause("volume-missing", Code.CLAIM_MISSING, pods(**volume("no-such-claim"))),
    Cause("scaled-gang", Code.INSUFFICIENT_RESOURCES, SCALED, (FULL, FULL), gang=f"{NAME}-0-g-0",
          of_gang=Code.BASE_GANG_NOT_SCHEDULED),
)  # fmt: skip
OF_SCHEDULERS = (
    Cause("pod-full", Code.INSUFFICIENT_RESOURCES, one(), (FULL,)),
    Cause("pod-not-selected", Code.NODE_SELECTOR_MISMATCH, one(nodeSelector={"example.com/pool": "none"})),
    Cause("pod-without-volume", Code.VOLUME_NOT_BOUND, one(**volume("no-such-claim"))),
    Cause("pod-with-unbound-volume", Code.VOLUME_NOT_BOUND, one(**volume("data")),
          objects=((PERSISTENT_VOLUME_CLAIMS, UNBOUND),)),
    Cause("pod-with-unallocated-claim", Code.CLAIM_NOT_ALLOCATED,
          one(gpus=0, **claimed(resourceClaimName="claim")),
          objects=((RESOURCE_CLAIMS, NO_SUCH_CLASS),)),
    Cause("pod-without-claim", Code.CLAIM_NOT_ALLOCATED,
          one(gpus=0, **claimed(resourceClaimName="no-such-claim"))),
    Cause("pod-affinity", Code.SCHEDULER_MESSAGE, one(affinity=AFFINITY_NOT_MET)),
    Cause("pod-spread", Code.SCHEDULER_MESSAGE, one(**SPREAD)),
    Cause("user-gate", Code.USER_SCHEDULING_GATE, one(schedulingGates=[{"name": "example.com/budget"}])),
    Cause("unlisted-scheduler", Code.SCHEDULER_NOT_CONFIGURED, one(schedulerName="unlisted-scheduler")),
    Cause("kai-not-installed", Code.SCHEDULER_OBJECT_FAILED, one(schedulerName="kai-scheduler")),
    Cause("volcano-not-installed", Code.SCHEDULER_OBJECT_FAILED, one(schedulerName="volcano")),
)  # fmt: skip
OF_ADMISSION = (
    Cause("quota-of-pods", Code.QUOTA_EXCEEDED, pods(), objects=(quota({"pods": "1"}, {"pods": "0"}),)),
    Cause("quota-of-nothing", Code.QUOTA_EXCEEDED, pods(), objects=(quota({"pods": "0"}, {"pods": "0"}),)),
    Cause("quota-needs-requests", Code.QUOTA_EXCEEDED, pods(), objects=(
        quota({"requests.cpu": "9"}, {"requests.cpu": "0"}),)),
    Cause("pod-security", Code.ADMISSION_REFUSED, pods(),
          namespace_labels={"pod-security.kubernetes.io/enforce": "restricted"}),
    Cause("limit-range", Code.ADMISSION_REFUSED, pods(gpus=0, **LARGE), objects=((LIMITS, LIMIT),)),
    Cause("no-priority-class", Code.ADMISSION_REFUSED, pods(priorityClassName="no-such-class")),
    Cause("no-runtime-class", Code.ADMISSION_REFUSED, pods(runtimeClassName="no-such-class")),
    Cause("no-service-account", Code.ADMISSION_REFUSED, pods(serviceAccountName="no-such-account")),
    Cause("invalid-pod", Code.ADMISSION_REFUSED, pods(hostname="not_a_hostname", restartPolicy="Sometimes")),
    # Without the Service pods do not find each other, and do not become ready.
    Cause("foreign-service", Code.NAME_CONFLICT, starting("a"), objects=((SERVICES, FOREIGN_SERVICE),),
          gang=None),
    Cause("webhook-down", Code.WEBHOOK_UNAVAILABLE, pods(), namespace_labels={"webhook": "down"}),
)  # fmt: skip
OF_KUBELET = (
    Cause("image-missing", Code.IMAGE_PULL_FAILED, starting("a"),
          pod_statuses={"a": waiting("ErrImagePull")}),
    Cause("image-back-off", Code.IMAGE_PULL_FAILED, starting("a"),
          pod_statuses={"a": waiting("ImagePullBackOff")}),
    Cause("image-name", Code.IMAGE_PULL_FAILED, starting("a"),
          pod_statuses={"a": waiting("InvalidImageName")}),
    Cause("image-of-init-container", Code.IMAGE_PULL_FAILED, starting("a", initContainers=[
        {"name": "init", "image": "init:1"}]), pod_statuses={
            "a": waiting("ImagePullBackOff", kind="initContainerStatuses", name="init")}),
    Cause("config-map-missing", Code.CONTAINER_NOT_CREATED, starting("a"),
          pod_statuses={"a": waiting("CreateContainerConfigError")}),
    Cause("crash-loop", Code.CONTAINER_CRASHING, starting("a"),
          pod_statuses={"a": waiting("CrashLoopBackOff", **CRASHED)}),
    Cause("out-of-memory", Code.CONTAINER_CRASHING, starting("a"),
          pod_statuses={"a": waiting("CrashLoopBackOff", **KILLED)}),
    Cause("runs-after-crash", Code.CONTAINER_CRASHING, starting("a"),
          pod_statuses={"a": reported(RUNNING, **CRASHED)}),
    Cause("start-order", Code.INIT_CONTAINER_WAITS, starting("a", "b", after="a"), pod_statuses={
        "b": reported(RUNNING, kind="initContainerStatuses", name="grove-initc")}),
    Cause("start-order-and-crash", Code.CONTAINER_CRASHING, starting("a", "b", after="a"), pod_statuses={
        "a": waiting("CrashLoopBackOff", **CRASHED),
        "b": reported(RUNNING, kind="initContainerStatuses", name="grove-initc")}),
)  # fmt: skip
CAUSES = (*OF_PLACEMENT, *OF_SCHEDULERS, *OF_ADMISSION, *OF_KUBELET)
