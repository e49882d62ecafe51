"""Why a pod is not ready, in a few words: its scheduler's, or its kubelet's. Pure.

More of a pod is read here than the operator has any use for, and only while somebody looks.
"""

from __future__ import annotations

from grove.api.types.pod import ContainerState, ContainerStatus, Pod, PodStatus
from grove.api.wire import Wire

_STARTING = {"", "ContainerCreating", "PodInitializing"}


class Waiting(Wire, frozen=True):
    """Why a container does not run."""

    reason: str = ""


class WaitingContainerState(ContainerState, frozen=True):
    """A container's state, also while it waits."""

    waiting: Waiting = Waiting()


class ReasonedContainerStatus(ContainerStatus, frozen=True):
    """A container, and how it is now."""

    state: WaitingContainerState = WaitingContainerState()


class ReasonedPodStatus(PodStatus, frozen=True):
    """How a pod fares, and why."""

    reason: str = ""
    container_statuses: tuple[ReasonedContainerStatus, ...] = ()
    init_container_statuses: tuple[ReasonedContainerStatus, ...] = ()


class ReasonedPod(Pod, frozen=True):
    """A pod as commands read it."""

    status: ReasonedPodStatus = ReasonedPodStatus()


def pod_reason(pod: Pod, state: str) -> str:
    """Why it is in this state, if that is known and no secret."""
    if state == "unscheduled":
        words = (one.message for one in pod.status.conditions if one.type == "PodScheduled")
        return " ".join(next(words, _unscheduled_reason(pod)).split())
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
    return f"{scheduler} has not looked at it yet" if scheduler else ""
