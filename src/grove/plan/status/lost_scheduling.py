"""The event of a clique or group none of whose replicas is scheduled any more."""

from __future__ import annotations

from collections.abc import Callable

from grove.api.event_reasons import EventReason, EventReporter
from grove.api.types.podclique import PodClique, PodCliqueStatus, PodCliqueUpdateProgress
from grove.api.types.podcliquescalinggroup import (
    PodCliqueScalingGroup,
    PodCliqueScalingGroupStatus,
    PodCliqueScalingGroupUpdateProgress,
)
from grove.plan.model import PlannedEvent
from grove.plan.writes.builders import reference

Progress = PodCliqueUpdateProgress | PodCliqueScalingGroupUpdateProgress | None


def lost_scheduling_events(
    found: PodClique | PodCliqueScalingGroup,
    desired: PodCliqueStatus | PodCliqueScalingGroupStatus,
    restart_pending: Callable[[], bool],
    group_progress: Progress = None,
) -> tuple[PlannedEvent, ...]:
    """The event if the status no longer has scheduled replicas. There is none with `spec.replicas` 0, during
    a rollout, of the clique or of its group, and if a gang termination took the nodes, which has its own
    event."""
    before = found.status.scheduled_replicas
    if not before or desired.scheduled_replicas or not found.spec.replicas or restart_pending():
        return ()
    if _in_progress(desired.update_progress) or _in_progress(group_progress):
        return ()
    note = f"None of {found.spec.replicas} replicas is scheduled any more; {before} were before"
    reporter = EventReporter.CLIQUE if isinstance(found, PodClique) else EventReporter.GROUP
    return (
        PlannedEvent(
            reference(found), EventReason.ALL_SCHEDULED_LOST, note, warning=True, reporter=reporter.value
        ),
    )


def _in_progress(progress: Progress) -> bool:
    return progress is not None and progress.update_ended_at is None
