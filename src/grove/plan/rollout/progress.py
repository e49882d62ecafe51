"""Computes the progress of a rollout in the status of a clique or group: start, end, and the units that were
replaced, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove.api.types.podclique import PodCliqueUpdateProgress, PodsSelectedToUpdate
from grove.api.types.podcliquescalinggroup import (
    PodCliqueScalingGroupUpdateProgress,
    ReplicasSelectedToUpdate,
)
from grove.api.types.podcliqueset import PodCliqueSetUpdateProgress
from grove.plan.rollout.replica_order import UpdateMode
from grove.plan.rollout.units import Name, UpdateDecision, UpdateUnit
from grove.plan.timestamps import rfc3339

CliqueProgress = PodCliqueUpdateProgress
GroupProgress = PodCliqueScalingGroupUpdateProgress
P = TypeVar("P", CliqueProgress, GroupProgress)


class UpdateTarget(Struct, frozen=True, gc=False):
    """The target revision of a replica's rollout, and whether it may proceed."""

    mode: UpdateMode
    generation_hash: str
    now: float
    over: bool = False
    """The status of the set says that the update has ended."""


class UpdatesInProgress(Struct, frozen=True, gc=False):
    """The names of the cliques and groups of a replica that are being updated."""

    cliques: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()


def is_in_progress(progress: CliqueProgress | GroupProgress | PodCliqueSetUpdateProgress | None) -> bool:
    """Whether an update has started and has not ended."""
    return progress is not None and progress.update_ended_at is None


def resume_progress(target: UpdateTarget, known: P | None, new_progress: P, same: bool) -> P | None:
    """The progress to continue from: the known one, or a new one if that has another target."""
    if target.mode is UpdateMode.ON_DELETE and not same:
        return replace(new_progress, update_ended_at=new_progress.update_started_at)
    if target.over and known is not None:
        # The status may be from a stale cache: about another update, or before this one ended.
        ended = known.update_ended_at or new_progress.update_started_at
        return replace(new_progress, update_started_at=known.update_started_at, update_ended_at=ended)
    return new_progress if target.mode is UpdateMode.ROLLING and not same else known


def close_or_reopen(progress: P, target: UpdateTarget, decision: UpdateDecision[Name]) -> P:
    """Ends the progress if nothing is left to do, and reopens it if a pod of the old template appears
    later."""
    over = decision.over or target.mode is UpdateMode.ON_DELETE
    if over and progress.update_ended_at is None:
        progress = replace(progress, update_ended_at=rfc3339(target.now))
        if isinstance(progress, CliqueProgress):
            return replace(progress, ready_pods_selected_to_update=None)
        return replace(progress, ready_replica_indices_selected_to_update=None)
    if not over and target.mode is UpdateMode.ROLLING:
        return replace(progress, update_ended_at=None)
    return progress


def replaced_units(selected: PodsSelectedToUpdate | ReplicasSelectedToUpdate | None) -> tuple[Any, ...]:
    """The units that the update replaced, in order."""
    return (*selected.completed, selected.current) if selected else ()


def record_selection(
    replaced_earlier: tuple[Any, ...], chosen: Sequence[UpdateUnit[Any]]
) -> tuple[Any, tuple[Any, ...]]:
    """The unit that is replaced now, and those before it."""
    current = chosen[-1].name
    earlier = dict.fromkeys([*replaced_earlier, *(unit.name for unit in chosen)])
    earlier.pop(current)
    return current, tuple(earlier)
