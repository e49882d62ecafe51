"""Pods that should be gone and are not: their node is lost, and nobody is there to say that they have ended.

They are replaced at once like any pod that is deleted. Whether they may also be forgotten is for the user to
say, in an annotation of the set: on a node that is only cut off they may still run.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api import annotations as keys
from grove.api.intents import Delete
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet
from grove.plan import pods as state
from grove.plan.moments import moment, seconds
from grove.plan.targets import foreign_target


def forgotten(workload: PodCliqueSet, pods: Iterable[Pod], now: float) -> tuple[list[Delete], float | None]:
    """Deletes without grace for what should have been gone so long ago, and when to look again."""
    patience = _patience(workload)
    if patience is None:
        return [], None
    leaving = [pod for pod in pods if state.terminating(pod)]
    due = [(moment(pod.metadata.deletion_timestamp) + patience, pod) for pod in leaving]
    deletes = [
        Delete(foreign_target("v1", "Pod", pod), uid=pod.metadata.uid, grace_seconds=0)
        for when, pod in due
        if when <= now
    ]
    return deletes, min((when for when, _ in due if when > now), default=None)


def _patience(workload: PodCliqueSet) -> float | None:
    text = workload.metadata.annotations.get(keys.FORCE_DELETE_AFTER)
    try:
        return None if text is None else seconds(text)
    except ValueError:
        return None
