"""Units of an update: what is taken down and comes back as one. A pod of a clique that stands alone, or a
replica of a scaling group with all its pods.

    outdated, not ready   replaced at once, all of them: nobody misses what does not answer
    outdated, ready       the next one, if the minimum is ready and no other unit is down
    none outdated         the update is over when the unit that was taken down last is back

A unit is down if it is not ready, or if a pod of it is missing or still on its way out. One that no node has
room for is excused, unless it was us who took it down: scaling out too far must not stop an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from grove.api.types.pod import Pod

Name = TypeVar("Name", str, int)


class UpdateUnit(Struct, Generic[Name], frozen=True, gc=False):
    """One unit of a clique or group. Those that come first go first."""

    name: Name
    """A pod's name, or the index of a group's replica."""
    outdated: bool = False
    ready: bool = False
    complete: bool = True
    """Every pod of it has been seen. What is not seen may be ready by now."""
    terminating_until: float = 0.0
    """Until when a pod of it that is on its way out is waited for; 0 if there is none."""
    replaced_by_update: bool = False
    """The update took it down, and this is what came after it."""
    unschedulable: bool = False
    """No node has room for it."""
    pods: tuple[Pod, ...] = ()

    @property
    def down(self) -> bool:
        excused = self.unschedulable and not self.replaced_by_update
        return bool(self.terminating_until) or not self.complete or (not self.ready and not excused)


class UpdateDecision(Struct, Generic[Name], frozen=True, gc=False):
    """What an update does next."""

    unready: tuple[UpdateUnit[Name], ...] = ()
    """To be replaced at once."""
    chosen: tuple[UpdateUnit[Name], ...] = ()
    """Ready ones whose turn it is."""
    over: bool = False


def select_units(units: Sequence[UpdateUnit[Name]], minimum: int, budget: int) -> UpdateDecision[Name]:
    """What an update does next about a clique or group of which `minimum` units are needed; `budget` of them
    may be down at once."""
    unready = tuple(unit for unit in units if unit.outdated and not unit.ready and unit.complete)
    waiting = [unit for unit in units if unit.outdated and unit.ready]
    room = budget - sum(unit.down for unit in units)
    enough = sum(unit.ready for unit in units) >= minimum
    chosen = tuple(waiting[:room]) if enough and room > 0 else ()
    over = not any(unit.outdated or (unit.down and unit.replaced_by_update) for unit in units)
    return UpdateDecision(unready, chosen, over)
