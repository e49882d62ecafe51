"""Whose turn it is: a set updates one replica after another, and inside it every clique and group at once.

The set's status names the replica; the replica's own plan reads it there and does the rest (`rollout`).

    template changed   -> update opened, with OnDelete closed at once
    replica done       -> the next one: first those that nobody would miss, then by index
    all replicas done  -> update closed
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec.structs import replace

from grove.api.sets import (
    PodCliqueSet,
    PodCliqueSetUpdateProgress,
    ReplicaUpdateProgress,
    UpdateStrategyType,
)
from grove.plan.hashes import is_ours
from grove.plan.model import Standing
from grove.plan.moments import rfc3339

Progress = PodCliqueSetUpdateProgress


class Turn(StrEnum):
    """What a replica may do about pods of an old template."""

    NONE = "none"
    ROLLING = "rolling"
    PAUSED = "paused"
    ON_DELETE = "on delete"


def turn_of(workload: PodCliqueSet, index: int, generation_hash: str) -> Turn:
    """What replica `index` may do now."""
    strategy, progress = workload.spec.update_strategy, workload.status.update_progress
    if strategy.type is UpdateStrategyType.ON_DELETE:
        return Turn.ON_DELETE
    if progress is None or progress.update_ended_at is not None:
        return Turn.NONE
    if workload.status.current_generation_hash != generation_hash or index != _current(progress):
        return Turn.NONE
    return Turn.PAUSED if strategy.paused else Turn.ROLLING


def is_over(workload: PodCliqueSet, generation_hash: str) -> bool:
    """Whether every replica has been brought to this template."""
    strategy, status = workload.spec.update_strategy, workload.status
    rolls = strategy.type is not UpdateStrategyType.ON_DELETE
    ended = status.update_progress is not None and status.update_progress.update_ended_at is not None
    return rolls and ended and status.current_generation_hash == generation_hash


def advance(
    workload: PodCliqueSet,
    generation_hash: str,
    standings: Sequence[Standing],
    now: float,
    indices: Sequence[int] | None = None,
) -> Progress | None:
    """How far the update of a set is, and whose turn it is next. `standings` are its replicas, in order; of a
    set that is held, those with these `indices`."""
    before, moment = workload.status, rfc3339(now)
    on_delete = workload.spec.update_strategy.type is UpdateStrategyType.ON_DELETE
    progress = before.update_progress
    if _has_changed(before.current_generation_hash, generation_hash, standings):
        progress = _opened(progress, moment)
    if progress is None or progress.update_ended_at is not None:
        return progress
    if on_delete:
        return replace(progress, update_ended_at=moment, currently_updating=())
    if not all(standing.generation_hash == generation_hash for standing in standings):
        return progress  # who has not looked at the new template cannot say whether it is done
    numbered = zip(range(len(standings)) if indices is None else indices, standings, strict=True)
    undone = {index: standing for index, standing in numbered if not standing.rolled}
    if not undone:
        return replace(progress, update_ended_at=moment, currently_updating=())
    if _current(progress) in undone or workload.spec.update_strategy.paused:
        return progress
    chosen = min(undone, key=lambda index: _urgency(undone[index], index))
    return replace(progress, currently_updating=(ReplicaUpdateProgress(chosen, moment),))


def _has_changed(known: str, generation_hash: str, standings: Sequence[Standing]) -> bool:
    """Whether the template is another than it was. If that has never been written down, or by upstream, whose
    hashes cannot be computed here, the pods know: it may have changed before it was."""
    if is_ours(known):
        return known != generation_hash
    return any(standing.outdated for standing in standings)


def _opened(earlier: Progress | None, moment: str) -> Progress:
    """An update that overtakes another goes on with the replica that the other had begun: no second one is
    to suffer before that one is whole."""
    begun = _current(earlier)
    entries = () if begun is None else (ReplicaUpdateProgress(begun, moment),)
    return Progress(update_started_at=moment, currently_updating=entries)


def _current(progress: Progress | None) -> int | None:
    entries = progress.currently_updating if progress else ()
    return next((entry.replica_index for entry in entries if entry.update_ended_at is None), None)


def _urgency(standing: Standing, index: int) -> tuple[bool, bool, int]:
    """First those that have nothing to lose."""
    return (standing.scheduled_pods > 0, not standing.breached, index)
