"""Why a pod is not ready, as its scheduler or its kubelet reports it. Pure.

Decodes fields of pods that the operator does not need and therefore does not cache; commands read them.
"""

from __future__ import annotations

from grove.api.types.pod import ContainerState, ContainerStatus, Pod, PodStatus
from grove.api.wire import Wire

_STARTING = {"", "ContainerCreating", "PodInitializing"}


class Waiting(Wire, frozen=True):
    """Why a container waits."""

    reason: str = ""


class WaitingContainerState(ContainerState, frozen=True):
    """A container's state, including the reason while it waits."""

    waiting: Waiting = Waiting()


class ReasonedContainerStatus(ContainerStatus, frozen=True):
    """A container's status with its current state."""

    state: WaitingContainerState = WaitingContainerState()


class ReasonedPodStatus(PodStatus, frozen=True):
    """A pod's status with the reasons."""

    reason: str = ""
    container_statuses: tuple[ReasonedContainerStatus, ...] = ()
    init_container_statuses: tuple[ReasonedContainerStatus, ...] = ()


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
    waiting = ((one.name, one.state.waiting.reason) for one in containers)
    return next((f"{name}: {reason}" for name, reason in waiting if reason not in _STARTING), "")


def _unscheduled_reason(pod: Pod) -> str:
    scheduler = pod.spec.scheduler_name
    return f"{scheduler} has not considered it yet" if scheduler else ""
