"""Force-deletes pods that stay terminating because their node is lost and no kubelet confirms their end.

They are replaced at once like any deleted pod. Whether they are also force-deleted is the user's decision, in
an annotation of the set: on a node that is only disconnected they may still run.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from grove.api.intents import Delete
from grove.api.naming import annotations as keys
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.cliques.state import CliqueState
from grove.plan.members import pod_state
from grove.plan.timestamps import seconds, timestamp
from grove.plan.writes.builders import delete_pod


def force_deletes(
    workload: PodCliqueSet, cliques: Iterable[CliqueState], now: float
) -> tuple[list[Delete], float | None]:
    """Deletes without grace period for pods that have been due for longer than the annotation says, and when
    to check again."""
    delay = _force_delete_after(workload)
    if delay is None:
        return [], None
    due = [
        (timestamp(pod.metadata.deletion_timestamp) + delay, pod, clique)
        for clique in cliques
        for pod in clique.pods
        if pod_state.terminating(pod)
    ]
    deletes = [
        replace(delete_pod(pod, clique=clique.ref), grace_seconds=0)
        for when, pod, clique in due
        if when <= now
    ]
    return deletes, min((when for when, _, _ in due if when > now), default=None)


def _force_delete_after(workload: PodCliqueSet) -> float | None:
    text = workload.metadata.annotations.get(keys.FORCE_DELETE_AFTER)
    try:
        return None if text is None else seconds(text)
    except ValueError:
        return None
