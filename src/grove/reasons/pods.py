"""Why pods are not scheduled or not ready, as their scheduler and their kubelet report it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from grove.api.configuration.types import DEFAULT_SCHEDULER
from grove.api.naming.well_known import GANG_GATE, INIT_CONTAINER
from grove.api.types.pod import ContainerStatus, Pod, PodPhase
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.model import ObjectName, WaitReason
from grove.reasons.scheduler import scheduler_reason

_PULL_FAILURES = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"}
    | {"RegistryUnavailable", "SignatureValidationFailed"}
)
_CREATE_FAILURES = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError"}
    | {"PreStartHookError", "PostStartHookError"}
)
_CRASH_LOOP = "CrashLoopBackOff"
_GATED = "SchedulingGated"
"""What the API server writes about a gated pod. It remains without the gate, until a scheduler has considered
the pod."""


def pod_reason(pod: Pod) -> WaitReason | None:
    """Why a pod is not scheduled or not ready; None if no reason is known."""
    about = ObjectName("Pod", pod.metadata.name)
    if not pod.spec.node_name and not _has_condition(pod, "PodScheduled"):
        return _unscheduled_reason(pod, about)
    if pod.status.phase == PodPhase.FAILED:
        return WaitReason(Code.POD_FAILED, "it has failed", about)
    statuses = pod.status.init_container_statuses + pod.status.container_statuses
    for status in statuses:
        if (found := _container_reason(status)) is not None:
            code, message = found
            return WaitReason(code, f"container {status.name} {message}", about)
    return None


def pods_reasons(pods: Iterable[Pod]) -> list[WaitReason]:
    """The reasons of pods, one for each code: about the first of them by name, with the number of others."""
    by_code: dict[Code, list[WaitReason]] = {}
    for pod in sorted(pods, key=lambda each: each.metadata.name):
        if (found := pod_reason(pod)) is not None:
            by_code.setdefault(found.code, []).append(found)
    return [_with_count(same[0], len(same)) for same in by_code.values()]


def waits_in_init_container(pod: Pod) -> bool:
    """Whether a pod runs the init container that waits for pods of other cliques."""
    for status in pod.status.init_container_statuses:
        if status.name == INIT_CONTAINER:
            ended, waiting = status.state.terminated, status.state.waiting
            return ended is None and waiting is None and not status.ready
    return False


def _with_count(reason: WaitReason, pods: int) -> WaitReason:
    if pods == 1:
        return reason
    more = f"{pods - 1} more pod{'s' * (pods > 2)}"
    return replace(reason, message=f"{reason.message} (and {more})")


def _unscheduled_reason(pod: Pod, about: ObjectName) -> WaitReason | None:
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if others := [name for name in gates if name != GANG_GATE]:
        return WaitReason(Code.USER_SCHEDULING_GATE, f"it has scheduling gate {', '.join(others)}", about)
    if gates:
        return None
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason != _GATED:
            said = condition.message
            return scheduler_reason(said, pod.spec.scheduler_name, about) if said else None
    return _unconsidered_reason(pod, about)


def _unconsidered_reason(pod: Pod, about: ObjectName) -> WaitReason | None:
    """Kubernetes' scheduler does not consider a pod one of whose claims does not exist, and writes nothing
    about it: then a pod with claims has no words of its scheduler."""
    claims = pod.spec.resource_claims
    if not claims or pod.spec.scheduler_name != DEFAULT_SCHEDULER:
        return None
    named = next((each.resource_claim_name for each in claims if each.resource_claim_name), "")
    claim = f"ResourceClaim {named}"
    if not named:
        claim = f"its claim from ResourceClaimTemplate {claims[0].resource_claim_template_name}"
    message = f"{DEFAULT_SCHEDULER} has not considered it, and does not before {claim} exists"
    return WaitReason(Code.CLAIM_NOT_ALLOCATED, message, about)


def _container_reason(status: ContainerStatus) -> tuple[Code, str] | None:
    waiting = status.state.waiting.reason if status.state.waiting is not None else ""
    if waiting in _PULL_FAILURES:
        return Code.IMAGE_PULL_FAILED, "cannot pull its image"
    if waiting in _CREATE_FAILURES:
        return Code.CONTAINER_NOT_CREATED, f"cannot be created: {waiting}"
    if status.ready:
        return None
    ended = status.last_state.terminated or status.state.terminated
    if ended is not None and ended.exit_code:
        why = f" ({ended.reason})" if ended.reason not in ("", "Error") else ""
        return Code.CONTAINER_CRASHING, f"ended with exit code {ended.exit_code}{why}"
    return (Code.CONTAINER_CRASHING, "ends again and again") if waiting == _CRASH_LOOP else None


def unready(pods: Iterable[Pod]) -> Iterator[Pod]:
    """The pods that are not ready, without those that terminate."""
    for pod in pods:
        if pod.metadata.deletion_timestamp is None and not _has_condition(pod, "Ready"):
            yield pod


def _has_condition(pod: Pod, type_: str) -> bool:
    return any(each.type == type_ and each.status == "True" for each in pod.status.conditions)
