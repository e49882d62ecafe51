"""How far an update of a clique or group has come, as its status tells it: begun, ended, and what was taken
down for it, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove.api.cliques import PodCliqueUpdateProgress, PodsSelectedToUpdate
from grove.api.groups import PodCliqueScalingGroupUpdateProgress, ReplicasSelectedToUpdate
from grove.plan.moments import rfc3339
from grove.plan.turns import Turn
from grove.plan.units import Name, Unit, Verdict

CliqueProgress = PodCliqueUpdateProgress
GroupProgress = PodCliqueScalingGroupUpdateProgress
P = TypeVar("P", CliqueProgress, GroupProgress)


class Target(Struct, frozen=True, gc=False):
    """Where an update of a replica leads, and whether it may go on."""

    turn: Turn
    generation_hash: str
    now: float
    over: bool = False
    """The set says that all of it is done."""


def resumed(target: Target, known: P | None, opened: P, same: bool) -> P | None:
    """The progress to go on from: what is known, or a new one if it leads elsewhere."""
    if target.turn is Turn.ON_DELETE and not same:
        return replace(opened, update_ended_at=opened.update_started_at)
    if target.over and known is not None:
        # Who saw late may have been the last to tell of another update, or of this one as it was.
        ended = known.update_ended_at or opened.update_started_at
        return replace(opened, update_started_at=known.update_started_at, update_ended_at=ended)
    return opened if target.turn is Turn.ROLLING and not same else known


def settled(progress: P, target: Target, verdict: Verdict[Name]) -> P:
    """Ended if nothing is left to do, and open again if there is: a pod of the old template came late."""
    over = verdict.over or target.turn is Turn.ON_DELETE
    if over and progress.update_ended_at is None:
        progress = replace(progress, update_ended_at=rfc3339(target.now))
        if isinstance(progress, CliqueProgress):
            return replace(progress, ready_pods_selected_to_update=None)
        return replace(progress, ready_replica_indices_selected_to_update=None)
    if not over and target.turn is Turn.ROLLING:
        return replace(progress, update_ended_at=None)
    return progress


def taken_down(selected: PodsSelectedToUpdate | ReplicasSelectedToUpdate | None) -> tuple[Any, ...]:
    """What the update took down, in order."""
    return (*selected.completed, selected.current) if selected else ()


def selection(taken: tuple[Any, ...], chosen: Sequence[Unit[Any]]) -> tuple[Any, tuple[Any, ...]]:
    """The unit that is taken down now, and those before it."""
    current = chosen[-1].name
    earlier = dict.fromkeys([*taken, *(unit.name for unit in chosen)])
    earlier.pop(current)
    return current, tuple(earlier)
