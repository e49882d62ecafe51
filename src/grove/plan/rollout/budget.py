"""Computes how many units of a clique or group may be down during a rollout. Terminating pods of a scale-in
count: update and scale-in share one budget.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove import timing
from grove.api.naming import labels
from grove.api.types.common import RollingUpdate
from grove.api.types.pod import Pod
from grove.plan.cliques.state import CliqueState
from grove.plan.desired.expand import Group
from grove.plan.members import pod_state
from grove.plan.timestamps import timestamp


def max_unavailable(rolling_update: RollingUpdate | None) -> int:
    """How many units may be unavailable at once."""
    if rolling_update is None or rolling_update.max_unavailable is None:
        return 1
    return max(1, rolling_update.max_unavailable)


def terminating_until(pod: Pod, now: float) -> float:
    """Until when a terminating pod is waited for; 0 if it is overdue or not terminating."""
    if pod.metadata.deletion_timestamp is None:
        return 0.0
    until = timestamp(pod.metadata.deletion_timestamp) + timing.TERMINATING_EXTRA_WAIT
    return until if until > now else 0.0


def surplus_pods(clique: CliqueState, now: float) -> int:
    """How many terminating pods a clique has above its replica count."""
    indices = {member.index for member in clique.members}
    terminating = [
        pod for pod in clique.pods if pod_state.terminating(pod) and pod_state.index_of(pod) not in indices
    ]
    return sum(terminating_until(pod, now) > 0 for pod in terminating)


def surplus_replicas(group: Group, pods: Iterable[Pod], now: float) -> dict[int, float]:
    """The replicas above the count of a group that still have pods, with the time until which these are
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
