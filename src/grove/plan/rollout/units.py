"""Selects the units that a rollout replaces next. A unit is replaced as a whole: a pod of a clique outside of
groups, or a replica of a scaling group with all its pods.

    outdated, not ready   replaced at once, all of them: they serve nothing
    outdated, ready       the next one, if the minimum is ready and the budget allows one more unit to be down
    none outdated         the update ends when the unit that was replaced last is available

A unit is down if it is not ready, or if one of its pods is missing or still terminating. A unit that no node
has room for is not counted, unless the update replaced it: scaling out too far must not stop an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from grove.api.types.pod import Pod

Name = TypeVar("Name", str, int)


class UpdateUnit(Struct, Generic[Name], frozen=True, gc=False):
    """One unit of a clique or group. Units are replaced in the order of their list."""

    name: Name
    """A pod's name, or the index of a group's replica."""
    outdated: bool = False
    ready: bool = False
    complete: bool = True
    """Every pod of it is in the cache. One that is not may be ready by now."""
    terminating_until: float = 0.0
    """Until when its terminating pods are waited for; 0 if there are none."""
    replaced_by_update: bool = False
    """The update replaced it, and this is its successor."""
    unschedulable: bool = False
    """No node has room for it."""
    pods: tuple[Pod, ...] = ()

    @property
    def down(self) -> bool:
        not_counted = self.unschedulable and not self.replaced_by_update
        return bool(self.terminating_until) or not self.complete or (not self.ready and not not_counted)


class UpdateDecision(Struct, Generic[Name], frozen=True, gc=False):
    """The units that an update replaces next."""

    unready: tuple[UpdateUnit[Name], ...] = ()
    """Units to replace at once."""
    chosen: tuple[UpdateUnit[Name], ...] = ()
    """Ready units to replace now."""
    over: bool = False


def select_units(units: Sequence[UpdateUnit[Name]], minimum: int, budget: int) -> UpdateDecision[Name]:
    """Selects the units of a clique or group to replace next. `minimum` units are needed; `budget` of them
    may be down at once."""
    unready = tuple(unit for unit in units if unit.outdated and not unit.ready and unit.complete)
    waiting = [unit for unit in units if unit.outdated and unit.ready]
    room = budget - sum(unit.down for unit in units)
    enough = sum(unit.ready for unit in units) >= minimum
    chosen = tuple(waiting[:room]) if enough and room > 0 else ()
    over = not any(unit.outdated or (unit.down and unit.replaced_by_update) for unit in units)
    return UpdateDecision(unready, chosen, over)
