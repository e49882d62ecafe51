"""What a pod tells: whose it is, whether it lives, how far it has come."""

from __future__ import annotations

from grove.api.meta import ObjectMeta
from grove.api.naming import labels, names, well_known
from grove.api.types.pod import Pod, PodPhase
from grove.plan.timestamps import timestamp

_TERMINAL_PHASES = (PodPhase.FAILED.value, PodPhase.SUCCEEDED.value)


def controller_uid(metadata: ObjectMeta) -> str:
    """The UID of whoever controls an object; empty if nobody does."""
    for owner in metadata.owner_references:
        if owner.controller:
            return owner.uid
    return ""


def terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def ended(pod: Pod) -> bool:
    """It ran, failed or was evicted, and will not run again."""
    return pod.status.phase in _TERMINAL_PHASES


def alive(pod: Pod) -> bool:
    return not terminating(pod) and not ended(pod)


def index_of(pod: Pod) -> int | None:
    """Its place in its clique: what it is called there cannot be changed, what a label says can."""
    index = names.index_of_host(pod.spec.hostname)
    return index if index is not None else _labelled_index(pod)


def _labelled_index(pod: Pod) -> int | None:
    text = pod.metadata.labels.get(labels.POD_INDEX, "")
    return int(text) if text.isdecimal() else None


def ready(pod: Pod) -> bool:
    return _has_condition(pod, "Ready", "True")


def ready_since(pod: Pod) -> float:
    """When it became ready; 0 if it is not."""
    for condition in pod.status.conditions:
        if condition.type == "Ready" and condition.status == "True":
            return timestamp(condition.last_transition_time)
    return 0.0


def scheduled(pod: Pod) -> bool:
    return pod.spec.node_name != "" or _has_condition(pod, "PodScheduled", "True")


def unschedulable(pod: Pod) -> bool:
    """The scheduler has looked, and no node has room for it."""
    return pod.spec.node_name == "" and any(
        condition.type == "PodScheduled"
        and condition.status == "False"
        and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def gated(pod: Pod) -> bool:
    """It waits for us, whatever else it may wait for."""
    return any(gate.name == well_known.GANG_GATE for gate in pod.spec.scheduling_gates)


def has_scheduling_gates(pod: Pod) -> bool:
    """No scheduler looks at it yet: it waits for us, or for whoever opens the gates that its user wrote."""
    return bool(pod.spec.scheduling_gates)


def errored(pod: Pod) -> bool:
    """Not ready, and a container of it has failed before."""
    if ready(pod):
        return False
    statuses = pod.status.container_statuses + pod.status.init_container_statuses
    return any(
        status.last_state.terminated is not None and status.last_state.terminated.exit_code
        for status in statuses
    )


def started_not_ready(pod: Pod) -> bool:
    """A container runs and does not answer as it should; one that is still being prepared does not count."""
    if ready(pod) or errored(pod):
        return False
    return any(status.started and not status.ready for status in pod.status.container_statuses)


def _has_condition(pod: Pod, type_: str, status: str) -> bool:
    for condition in pod.status.conditions:
        if condition.type == type_:
            return condition.status == status
    return False
