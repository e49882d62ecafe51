"""Pods on their way out: how long they are waited for, and which of them a lower count sends away."""

from __future__ import annotations

from collections.abc import Iterable

from grove.api import labels
from grove.api.pods import Pod
from grove.plan import pods as state
from grove.plan.enrolment import Enrolled
from grove.plan.expand import Group
from grove.plan.moments import moment

_PATIENCE = 30.0  # a pod that is still there so long after it should have ended is not waited for


def lingers_until(pod: Pod, now: float) -> float:
    """Until when a pod that is on its way out is waited for; 0 if it should long have been gone, or stays."""
    if pod.metadata.deletion_timestamp is None:
        return 0.0
    until = moment(pod.metadata.deletion_timestamp) + _PATIENCE
    return until if until > now else 0.0


def surplus_pods(clique: Enrolled, now: float) -> int:
    """Pods that a lower count sends away: update and scale-in share one budget."""
    seats = {member.index for member in clique.members}
    leaving = [pod for pod in clique.pods if state.terminating(pod) and state.index_of(pod) not in seats]
    return sum(lingers_until(pod, now) > 0 for pod in leaving)


def surplus_replicas(group: Group, pods: Iterable[Pod], now: float) -> dict[int, float]:
    """The same for a group: its replicas that still have pods, with when these are waited for no longer."""
    going: dict[int, float] = {}
    for pod in pods:
        carried = pod.metadata.labels
        index = carried.get(labels.GROUP_REPLICA, "")
        if carried.get(labels.GROUP) == group.name and index.isdecimal() and int(index) >= group.replicas:
            until = lingers_until(pod, now) if state.terminating(pod) else now + _PATIENCE
            if until:
                going[int(index)] = max(until, going.get(int(index), 0.0))
    return going
