"""Predicates on one pod: its controller, lifecycle, readiness and scheduling."""

from __future__ import annotations

from grove.api.meta import ObjectMeta
from grove.api.naming import labels, names, well_known
from grove.api.types.pod import Pod, PodPhase
from grove.plan.timestamps import timestamp

_TERMINAL_PHASES = (PodPhase.FAILED.value, PodPhase.SUCCEEDED.value)


def controller_uid(metadata: ObjectMeta) -> str:
    """The UID of the controller of an object; empty if there is none."""
    for owner in metadata.owner_references:
        if owner.controller:
            return owner.uid
    return ""


def terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def ended(pod: Pod) -> bool:
    """The pod has completed, failed or was evicted, and does not run again."""
    return pod.status.phase in _TERMINAL_PHASES


def alive(pod: Pod) -> bool:
    return not terminating(pod) and not ended(pod)


def index_of(pod: Pod) -> int | None:
    """The index of a pod in its clique, from the host name, which is immutable, or else from its label."""
    index = names.index_of_host(pod.spec.hostname)
    return index if index is not None else _labelled_index(pod)


def _labelled_index(pod: Pod) -> int | None:
    text = pod.metadata.labels.get(labels.POD_INDEX, "")
    return int(text) if text.isdecimal() else None


def ready(pod: Pod) -> bool:
    return _has_condition(pod, "Ready", "True")


def ready_since(pod: Pod) -> float:
    """When the pod became ready; 0 if it is not."""
    for condition in pod.status.conditions:
        if condition.type == "Ready" and condition.status == "True":
            return timestamp(condition.last_transition_time)
    return 0.0


def has_started(pod: Pod) -> bool:
    """A container of the pod has been started, so everything that it claims was prepared on its node."""
    return any(
        status.started or status.ready or status.last_state.terminated is not None
        for status in pod.status.container_statuses
    )


def scheduled_since(pod: Pod) -> float:
    """When the pod got its node, as far as that is known."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            return timestamp(condition.last_transition_time)
    return timestamp(pod.metadata.creation_timestamp)


def scheduled(pod: Pod) -> bool:
    return pod.spec.node_name != "" or _has_condition(pod, "PodScheduled", "True")


def unschedulable(pod: Pod) -> bool:
    """The scheduler has tried, and no node has room for the pod."""
    return pod.spec.node_name == "" and unschedulable_since(pod) is not None


def unschedulable_since(pod: Pod) -> float | None:
    """Since when the scheduler has found no node for a pod; None if it has, or has not tried yet."""
    for condition in pod.status.conditions:
        if (
            condition.type == "PodScheduled"
            and condition.status == "False"
            and condition.reason == "Unschedulable"
        ):
            return timestamp(condition.last_transition_time or pod.metadata.creation_timestamp)
    return None


def gated(pod: Pod) -> bool:
    """Whether the pod has the operator's scheduling gate, next to any others."""
    return any(gate.name == well_known.GANG_GATE for gate in pod.spec.scheduling_gates)


def has_scheduling_gates(pod: Pod) -> bool:
    """Whether the scheduler does not consider the pod yet: it has our scheduling gate or one of the
    user's."""
    return bool(pod.spec.scheduling_gates)


def errored(pod: Pod) -> bool:
    """Not ready, and one of its containers has failed before."""
    if ready(pod):
        return False
    statuses = pod.status.container_statuses + pod.status.init_container_statuses
    return any(
        status.last_state.terminated is not None and status.last_state.terminated.exit_code
        for status in statuses
    )


def started_not_ready(pod: Pod) -> bool:
    """A container is started and not ready; one that has not started yet does not count."""
    if ready(pod) or errored(pod):
        return False
    return any(status.started and not status.ready for status in pod.status.container_statuses)


def _has_condition(pod: Pod, type_: str, status: str) -> bool:
    for condition in pod.status.conditions:
        if condition.type == type_:
            return condition.status == status
    return False
