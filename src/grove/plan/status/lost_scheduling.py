"""The event of a clique or group none of whose replicas is scheduled any more."""

from __future__ import annotations

from grove.api.event_reasons import EventReason, EventReporter
from grove.api.types.podclique import PodClique, PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup, PodCliqueScalingGroupStatus
from grove.plan.model import PlannedEvent
from grove.plan.rollout.progress import GroupProgress, is_in_progress
from grove.plan.writes.builders import reference


def lost_scheduling_events(
    found: PodClique | PodCliqueScalingGroup,
    desired: PodCliqueStatus | PodCliqueScalingGroupStatus,
    restart_pending: bool,
    group_progress: GroupProgress | None = None,
) -> tuple[PlannedEvent, ...]:
    """The event if the status no longer has scheduled replicas. There is none with `spec.replicas` 0, during
    a rollout, of the clique or of its group, and if a gang termination took the nodes, which has its own
    event."""
    before = found.status.scheduled_replicas
    if not before or desired.scheduled_replicas or not found.spec.replicas or restart_pending:
        return ()
    if is_in_progress(desired.update_progress) or is_in_progress(group_progress):
        return ()
    note = f"None of {found.spec.replicas} replicas is scheduled any more; {before} were before"
    reporter = EventReporter.CLIQUE if isinstance(found, PodClique) else EventReporter.GROUP
    return (
        PlannedEvent(
            reference(found), EventReason.ALL_SCHEDULED_LOST, note, warning=True, reporter=reporter.value
        ),
    )
