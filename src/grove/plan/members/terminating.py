"""Decides how long terminating pods are waited for, and which of them were deleted by a scale-in."""

from __future__ import annotations

from collections.abc import Iterable

from grove import timing
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.plan.desired.expand import Group
from grove.plan.members import pod_state
from grove.plan.members.clique_state import CliqueState
from grove.plan.timestamps import timestamp


def terminating_until(pod: Pod, now: float) -> float:
    """Until when a terminating pod is waited for; 0 if it is overdue or not terminating."""
    if pod.metadata.deletion_timestamp is None:
        return 0.0
    until = timestamp(pod.metadata.deletion_timestamp) + timing.TERMINATING_EXTRA_WAIT
    return until if until > now else 0.0


def surplus_pods(clique: CliqueState, now: float) -> int:
    """Terminating pods above the replica count: update and scale-in share one budget."""
    indices = {member.index for member in clique.members}
    terminating = [
        pod for pod in clique.pods if pod_state.terminating(pod) and pod_state.index_of(pod) not in indices
    ]
    return sum(terminating_until(pod, now) > 0 for pod in terminating)


def surplus_replicas(group: Group, pods: Iterable[Pod], now: float) -> dict[int, float]:
    """The same for a group: its surplus replicas that still have pods, with the time until which these are
    waited for."""
    waiting_until: dict[int, float] = {}
    for pod in pods:
        object_labels = pod.metadata.labels
        index = object_labels.get(labels.GROUP_REPLICA, "")
        if (
            object_labels.get(labels.GROUP) == group.name
            and index.isdecimal()
            and int(index) >= group.replicas
        ):
            until = (
                terminating_until(pod, now)
                if pod_state.terminating(pod)
                else now + timing.TERMINATING_EXTRA_WAIT
            )
            if until:
                waiting_until[int(index)] = max(until, waiting_until.get(int(index), 0.0))
    return waiting_until
