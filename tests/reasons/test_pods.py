"""Why a pod is not scheduled or not ready."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grove.api.types.pod import Pod
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.pods import pod_reason, pods_reasons, unready, waits_in_init_container

GATE, USER_GATE = {"name": "grove.io/podgang-pending-creation"}, {"name": "example.com/budget"}


def a_pod(name: str = "p", *, spec: Any = None, **status: Any) -> Pod:
    body = {"metadata": {"name": name}, "spec": spec or {"nodeName": "n"}, "status": status}
    return msgspec.convert(body, Pod)


def container(name: str = "main", **status: Any) -> dict[str, Any]:
    return {"name": name, **status}


def waiting(reason: str) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": "back-off 10s"}}}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


def unschedulable(message: str, **spec: Any) -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return a_pod(spec=spec or {"schedulerName": "default-scheduler"}, conditions=[condition])


def claiming(scheduler: str = "default-scheduler", **status: Any) -> Pod:
    claims = [{"name": "c", "resourceClaimName": "gpus"}]
    return a_pod(spec={"schedulerName": scheduler, "resourceClaims": claims}, **status)


GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "blocked by gates",
}


def of_container(**status: Any) -> Pod:
    return a_pod(containerStatuses=[container(**status)])


PODS = [
    ("just created", a_pod(spec={"schedulerName": "x"}), None),
    ("gated by the operator", unschedulable("gated", schedulingGates=[GATE]), None),
    ("gated by a user", a_pod(spec={"schedulingGates": [GATE, USER_GATE]}), Code.USER_SCHEDULING_GATE),
    ("no node has room", unschedulable("0/1 nodes are available: 1 Insufficient cpu."),
     Code.INSUFFICIENT_RESOURCES),
    ("another scheduler's words", unschedulable("queue is full"), Code.SCHEDULER_MESSAGE),
    ("released and not considered yet", a_pod(spec={"schedulerName": "x"}, conditions=[GATED]), None),
    ("not considered with a claim", claiming(), Code.CLAIM_NOT_ALLOCATED),
    ("released and not considered with a claim", claiming(conditions=[GATED]), Code.CLAIM_NOT_ALLOCATED),
    ("another scheduler and a claim", claiming("kai-scheduler"), None),
    ("starting", of_container(**waiting("ContainerCreating")), None),
    ("running", of_container(ready=True, state={"running": {}}), None),
    ("image not found", of_container(**waiting("ErrImagePull")), Code.IMAGE_PULL_FAILED),
    ("image back-off", of_container(**waiting("ImagePullBackOff")), Code.IMAGE_PULL_FAILED),
    ("image name", of_container(**waiting("InvalidImageName")), Code.IMAGE_PULL_FAILED),
    ("image of an init container", a_pod(initContainerStatuses=[container(**waiting("ImagePullBackOff"))]),
     Code.IMAGE_PULL_FAILED),
    ("ConfigMap missing", of_container(**waiting("CreateContainerConfigError")), Code.CONTAINER_NOT_CREATED),
    ("crash loop", of_container(**waiting("CrashLoopBackOff"), lastState=ended(1)), Code.CONTAINER_CRASHING),
    ("crash loop with exit code 0", of_container(**waiting("CrashLoopBackOff"), lastState=ended(0)),
     Code.CONTAINER_CRASHING),
    ("running again after a crash", of_container(state={"running": {}}, lastState=ended(2)),
     Code.CONTAINER_CRASHING),
    ("ready again after a crash", of_container(ready=True, lastState=ended(2)), None),
    ("just ended", of_container(state=ended(2)), Code.CONTAINER_CRASHING),
    ("init container done", a_pod(initContainerStatuses=[container(ready=True, state=ended(0))]), None),
    ("failed", a_pod(phase="Failed"), Code.POD_FAILED),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "code"), [row[1:] for row in PODS], ids=[row[0] for row in PODS])
def test_pod_has_the_code_of_its_state(pod, code):
    found = pod_reason(pod)
    assert (found and found.code) == code


@pytest.mark.parametrize(
    ("claim", "named"),
    [
        ({"resourceClaimName": "gpus"}, "ResourceClaim gpus"),
        ({"resourceClaimTemplateName": "two"}, "its claim from ResourceClaimTemplate two"),
    ],
)
def test_claim_of_a_pod_not_considered_is_named(claim, named):
    spec = {"schedulerName": "default-scheduler", "resourceClaims": [{"name": "c", **claim}]}
    found = pod_reason(a_pod(spec=spec))
    assert found is not None
    assert found.message.endswith(f"does not before {named} exists")


def test_crash_is_reported_with_its_exit_code():
    found = pod_reason(of_container(lastState=ended(137, "OOMKilled")))
    assert found is not None
    assert found.line.startswith("Pod p: container main ended with exit code 137 (OOMKilled); ")


def test_equal_pods_have_one_reason_with_a_count():
    failing = [a_pod(name, containerStatuses=[container(**waiting("ErrImagePull"))]) for name in "cab"]
    (found,) = pods_reasons([*failing, a_pod("d")])
    assert str(found.about) == "Pod a"
    assert found.message.endswith("(and 2 more pods)")


def test_pull_in_back_off_and_retry_have_the_same_message():
    texts = {
        found.message
        for word in ("ErrImagePull", "ImagePullBackOff")
        if (found := pod_reason(of_container(**waiting(word))))
    }
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("status", "waits"),
    [
        ({"state": {"running": {}}}, True),
        ({"state": {"waiting": {"reason": "PodInitializing"}}}, False),
        ({"state": {"terminated": {"exitCode": 0}}, "ready": True}, False),
    ],
    ids=["runs", "not started", "done"],
)
def test_pod_waits_while_its_init_container_runs(status, waits):
    pod = a_pod(initContainerStatuses=[container("other"), container("grove-initc", **status)])
    assert waits_in_init_container(pod) is waits
    assert not waits_in_init_container(a_pod())


def test_ready_and_terminating_pods_do_not_wait():
    ready = a_pod("ready", conditions=[{"type": "Ready", "status": "True"}])
    leaving = msgspec.structs.replace(
        a_pod("b"),
        metadata=msgspec.structs.replace(ready.metadata, deletion_timestamp="2026-01-01T00:00:00Z"),
    )
    assert [pod.metadata.name for pod in unready([ready, leaving, a_pod("c")])] == ["c"]
