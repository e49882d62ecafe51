"""Why a pod is not ready, as its scheduler or its kubelet reports it. Pure.

Decodes fields of pods that the operator does not need and therefore does not cache; commands read them.
"""

from __future__ import annotations

from grove.api.types.pod import Pod, PodStatus

_STARTING = {"", "ContainerCreating", "PodInitializing"}


class ReasonedPodStatus(PodStatus, frozen=True):
    """A pod's status with its reason."""

    reason: str = ""


class ReasonedPod(Pod, frozen=True):
    """A pod as commands read it."""

    status: ReasonedPodStatus = ReasonedPodStatus()


def pod_reason(pod: Pod, state: str) -> str:
    """Why a pod is in this state; empty if no reason is known."""
    if state == "unscheduled":
        messages = (one.message for one in pod.status.conditions if one.type == "PodScheduled")
        return " ".join(next(messages, _unscheduled_reason(pod)).split())
    if not isinstance(pod, ReasonedPod):
        return ""
    if state == "failed":
        return pod.status.reason
    if state not in ("starting", "failing"):
        return ""
    containers = pod.status.init_container_statuses + pod.status.container_statuses
    waiting = ((one.name, one.state.waiting.reason) for one in containers if one.state.waiting)
    return next((f"{name}: {reason}" for name, reason in waiting if reason not in _STARTING), "")


def _unscheduled_reason(pod: Pod) -> str:
    scheduler = pod.spec.scheduler_name
    return f"{scheduler} has not considered it yet" if scheduler else ""
