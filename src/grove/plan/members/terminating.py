"""Pods on their way out: how long they are waited for, and which of them a lower count sends away."""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.plan.desired.expand import Group
from grove.plan.members import pod_state
from grove.plan.members.clique_state import CliqueState
from grove.plan.timestamps import timestamp

_EXTRA_WAIT = 30.0  # a pod that is still there so long after it should have ended is not waited for


def terminating_until(pod: Pod, now: float) -> float:
    """Until when a pod that is on its way out is waited for; 0 if it should long have been gone, or stays."""
    if pod.metadata.deletion_timestamp is None:
        return 0.0
    until = timestamp(pod.metadata.deletion_timestamp) + _EXTRA_WAIT
    return until if until > now else 0.0


def surplus_pods(clique: CliqueState, now: float) -> int:
    """Pods that a lower count sends away: update and scale-in share one budget."""
    indices = {member.index for member in clique.members}
    terminating = [
        pod for pod in clique.pods if pod_state.terminating(pod) and pod_state.index_of(pod) not in indices
    ]
    return sum(terminating_until(pod, now) > 0 for pod in terminating)


def surplus_replicas(group: Group, pods: Iterable[Pod], now: float) -> dict[int, float]:
    """The same for a group: its replicas that still have pods, with when these are waited for no longer."""
    waiting_until: dict[int, float] = {}
    for pod in pods:
        object_labels = pod.metadata.labels
        index = object_labels.get(labels.GROUP_REPLICA, "")
        if (
            object_labels.get(labels.GROUP) == group.name
            and index.isdecimal()
            and int(index) >= group.replicas
        ):
            until = terminating_until(pod, now) if pod_state.terminating(pod) else now + _EXTRA_WAIT
            if until:
                waiting_until[int(index)] = max(until, waiting_until.get(int(index), 0.0))
    return waiting_until
