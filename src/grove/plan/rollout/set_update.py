"""Computes what follows from the update progress of a set: the write of a decision, its events, the counts in
the status and the condition.

The decision, which replica is updated next, is in `rollout.replica_order`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from grove.api.event_reasons import EventReason
from grove.api.intents import Status
from grove.api.meta import Condition
from grove.api.types.podcliqueset import (
    PodCliqueSet,
    PodCliqueSetStatus,
    PodCliqueSetUpdateProgress,
    UpdateStrategyType,
)
from grove.plan.conditions import merge_conditions, update_in_progress
from grove.plan.desired.restarts import restart_requests
from grove.plan.model import PlannedEvent, ReplicaSummary
from grove.plan.rollout.progress import is_in_progress
from grove.plan.writes.builders import reference, write_status


def update_decision(
    workload: PodCliqueSet,
    status: PodCliqueSetStatus,
    hash_: str,
    progress: PodCliqueSetUpdateProgress | None,
    summaries: Sequence[ReplicaSummary],
    now: float,
) -> Status:
    """Writes that an update starts, proceeds to the next replica or ends. Replicas act on it, so it is
    written at once, on the latest version of the set, and events about it follow the write. The rest of the
    `status` is written with it: the counts never belong to another template than the hash."""
    condition = update_condition(progress, summaries)
    decided = replace(
        status,
        observed_generation=workload.status.observed_generation,
        current_generation_hash=hash_,
        update_progress=progress and with_counts(progress, hash_, summaries),
        conditions=merge_conditions(status.conditions, (condition,), now),
    )
    return write_status(workload, decided)


def update_events(
    workload: PodCliqueSet,
    progress: PodCliqueSetUpdateProgress | None,
    summaries: Mapping[int, ReplicaSummary],
    intent: str,
) -> Iterator[PlannedEvent]:
    """The events of an update that starts, proceeds or ends, after the write with the id `intent`."""
    before, event = workload.status.update_progress, partial(PlannedEvent, reference(workload), intent=intent)
    if progress is None:
        return
    if before is None or before.update_started_at != progress.update_started_at:
        yield event(EventReason.UPDATE_STARTED, _started(workload))
    else:
        for entry in before.currently_updating:
            index = entry.replica_index
            done = index in summaries and summaries[index].update_complete
            if done and entry not in progress.currently_updating:
                yield event(EventReason.REPLICA_UPDATED, f"Replica {index} is updated")
    on_delete = workload.spec.update_strategy.type is UpdateStrategyType.ON_DELETE
    if progress.update_ended_at is not None and not on_delete:
        yield event(EventReason.UPDATE_FINISHED, f"All {workload.spec.replicas} replicas are updated")


def _started(workload: PodCliqueSet) -> str:
    """Why an update starts. Which change it was is not known: the status has one hash of both."""
    if restart_requests(workload.metadata.annotations):
        return "The template has changed, or a restart was requested: the update has started"
    return "The template has changed: the update has started"


def update_condition(
    progress: PodCliqueSetUpdateProgress | None, summaries: Sequence[ReplicaSummary]
) -> Condition:
    """The condition `UpdateInProgress` of a set."""
    rolling = sum(summary.updating for summary in summaries)
    stalled = sum(summary.stalled for summary in summaries)
    overdue = f"{stalled} of {rolling} cliques and groups that are being updated exceeded progressDeadline"
    under_way = rolling > 0 or is_in_progress(progress)
    return update_in_progress(under_way, overdue if stalled else "")


def with_counts(
    progress: PodCliqueSetUpdateProgress, hash_: str, summaries: Sequence[ReplicaSummary]
) -> PodCliqueSetUpdateProgress:
    """The progress with the numbers of cliques and groups that are updated to the template with this hash."""
    over = progress.update_ended_at is not None
    current = [summary for summary in summaries if summary.generation_hash == hash_]
    return replace(
        progress,
        currently_updating=() if over else progress.currently_updating,
        updated_pod_cliques_count=sum(summary.updated_cliques for summary in current),
        total_pod_cliques_count=sum(summary.cliques for summary in summaries),
        updated_pod_clique_scaling_groups_count=sum(summary.updated_groups for summary in current),
        total_pod_clique_scaling_groups_count=sum(summary.groups for summary in summaries),
    )
