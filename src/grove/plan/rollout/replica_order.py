"""Decides which replica of a set is updated: one replica after another, and in it all cliques and groups at
once.

The status of the set names the replica; the plan of the replica reads it there and does the rest
(`rollout.planner`).

    template changed   -> update started, with OnDelete ended at once
    replica done       -> the next one: first those without scheduled pods, then breached ones, then by index
    all replicas done  -> update ended
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec.structs import replace

from grove.api.types.podcliqueset import (
    PodCliqueSet,
    PodCliqueSetUpdateProgress,
    ReplicaUpdateProgress,
    UpdateStrategyType,
)
from grove.plan.desired.template_hash import is_own_hash
from grove.plan.model import ReplicaSummary
from grove.plan.timestamps import rfc3339

Progress = PodCliqueSetUpdateProgress


class UpdateMode(StrEnum):
    """What a replica may do with pods of an old template."""

    NONE = "none"
    ROLLING = "rolling"
    PAUSED = "paused"
    ON_DELETE = "on delete"


def update_mode(workload: PodCliqueSet, index: int, generation_hash: str) -> UpdateMode:
    """Returns what replica `index` may do now."""
    strategy, progress = workload.spec.update_strategy, workload.status.update_progress
    if strategy.type is UpdateStrategyType.ON_DELETE:
        return UpdateMode.ON_DELETE
    if progress is None or progress.update_ended_at is not None:
        return UpdateMode.NONE
    if workload.status.current_generation_hash != generation_hash or index != _current(progress):
        return UpdateMode.NONE
    return UpdateMode.PAUSED if strategy.paused else UpdateMode.ROLLING


def is_update_complete(workload: PodCliqueSet, generation_hash: str) -> bool:
    """Whether every replica has been updated to this template."""
    strategy, status = workload.spec.update_strategy, workload.status
    rolls = strategy.type is not UpdateStrategyType.ON_DELETE
    ended = status.update_progress is not None and status.update_progress.update_ended_at is not None
    return rolls and ended and status.current_generation_hash == generation_hash


def next_update_progress(
    workload: PodCliqueSet,
    generation_hash: str,
    summaries: Sequence[ReplicaSummary],
    now: float,
    indices: Sequence[int] | None = None,
) -> Progress | None:
    """Returns the update progress of a set, with the replica that is updated next. `summaries` are its
    replicas, in order; of a set that is held, those with these `indices`."""
    before, timestamp = workload.status, rfc3339(now)
    on_delete = workload.spec.update_strategy.type is UpdateStrategyType.ON_DELETE
    progress = before.update_progress
    if _has_changed(before.current_generation_hash, generation_hash, summaries):
        progress = _start_update(progress, timestamp)
    if progress is None or progress.update_ended_at is not None:
        return progress
    if on_delete:
        return replace(progress, update_ended_at=timestamp, currently_updating=())
    if not all(summary.generation_hash == generation_hash for summary in summaries):
        return progress  # a replica that was not planned with the new template is not done
    numbered = zip(range(len(summaries)) if indices is None else indices, summaries, strict=True)
    pending = {index: summary for index, summary in numbered if not summary.update_complete}
    if not pending:
        return replace(progress, update_ended_at=timestamp, currently_updating=())
    if _current(progress) in pending or workload.spec.update_strategy.paused:
        return progress
    chosen = min(pending, key=lambda index: _update_priority(pending[index], index))
    return replace(progress, currently_updating=(ReplicaUpdateProgress(chosen, timestamp),))


def _has_changed(known: str, generation_hash: str, summaries: Sequence[ReplicaSummary]) -> bool:
    """Whether the template has changed. If its hash was never recorded, or by upstream, whose hashes cannot
    be computed here, the pods decide: the template may have changed before it was recorded."""
    if is_own_hash(known):
        return known != generation_hash
    return any(summary.outdated for summary in summaries)


def _start_update(earlier: Progress | None, timestamp: str) -> Progress:
    """Starts an update. One that supersedes another continues with the replica that the other had started: no
    second replica is disrupted before that one is available."""
    current = _current(earlier)
    entries = () if current is None else (ReplicaUpdateProgress(current, timestamp),)
    return Progress(update_started_at=timestamp, currently_updating=entries)


def _current(progress: Progress | None) -> int | None:
    entries = progress.currently_updating if progress else ()
    return next((entry.replica_index for entry in entries if entry.update_ended_at is None), None)


def _update_priority(summary: ReplicaSummary, index: int) -> tuple[bool, bool, int]:
    """Sort key: replicas that have nothing to lose come first."""
    return (summary.scheduled_pods > 0, not summary.breached, index)
