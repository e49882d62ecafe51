"""Computes by when a rollout must have progressed: `progressDeadline` after its latest progress."""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.types.common import RollingUpdate
from grove.plan.cliques.state import CliqueState
from grove.plan.members import pod_state
from grove.plan.rollout.progress import CliqueProgress, GroupProgress
from grove.plan.rollout.unit_state import outdated
from grove.plan.timestamps import seconds, timestamp


def progress_deadline(
    progress: CliqueProgress | GroupProgress,
    cliques: Iterable[CliqueState],
    rolling_update: RollingUpdate | None,
) -> float | None:
    """By when the update of these cliques must progress; None if it has ended or has no deadline."""
    if progress.update_ended_at is not None or rolling_update is None:
        return None
    if rolling_update.progress_deadline is None:
        return None
    return _latest_progress(progress, cliques) + seconds(rolling_update.progress_deadline)


def _latest_progress(progress: CliqueProgress | GroupProgress, cliques: Iterable[CliqueState]) -> float:
    """When a pod of the new template was last created or became ready, by the timestamps of the pods."""
    latest = timestamp(progress.update_started_at)
    for clique in cliques:
        for pod in clique.pods:
            if not outdated(clique, pod):
                latest = max(latest, timestamp(pod.metadata.creation_timestamp), pod_state.ready_since(pod))
    return latest
