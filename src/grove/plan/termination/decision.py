"""Decides on gang termination: what has been below `minAvailable` for `terminationDelay` is restarted as a
whole.

    a scaling group that keeps its minimum     -> only its broken replica
    any other clique or group below its own    -> the whole replica of the set

A unit is terminated once for a breach, and again only after its new pods have been scheduled. A unit that was
not ready in between waits twice as long each time, and after `GANG_RESTARTS` terminations in a row it is not
restarted, for a user to investigate. What follows from a decision is in `termination.effects`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from grove import timing
from grove.plan.cliques.state import CliqueState
from grove.plan.desired.expand import Gang, ReplicaLayout
from grove.plan.rollout.progress import UpdatesInProgress
from grove.plan.snapshot import Snapshot
from grove.plan.termination.breaches import Breach, Breaches, find_breaches
from grove.plan.termination.history import TerminationHistory, TerminationRecord, unit_of
from grove.plan.timestamps import earliest, rfc3339, seconds

DEFAULT_DELAY = "4h0m0s"


class BreachedUnit(Struct, frozen=True):
    """A unit that is below `minAvailable`, and what becomes of it."""

    name: str
    gang: str
    """The gang that records its terminations."""
    breaches: tuple[Breach, ...]
    restarts: int
    """How many restarts in a row it has had."""
    due_at: float | None
    """When it is restarted; None: not any more, for it had `timing.GANG_RESTARTS`."""

    @property
    def worst(self) -> Breach:
        """The breach that has lasted longest."""
        return min(self.breaches, key=lambda breach: breach.since)


class RecoveredUnit(Struct, frozen=True, gc=False):
    """A unit that was restarted and is available again: the next breach starts a new count."""

    name: str
    gang: str


class TerminationDecision(Struct, frozen=True):
    """What becomes of the units of one replica."""

    due: tuple[BreachedUnit, ...] = ()
    """Units that are restarted now."""
    waiting: tuple[BreachedUnit, ...] = ()
    """Units that are restarted later, if their breaches last."""
    exhausted: tuple[BreachedUnit, ...] = ()
    """Units that are not restarted any more."""
    recovered: tuple[RecoveredUnit, ...] = ()
    late_gangs: tuple[Gang, ...] = ()
    """Scaled gangs that have not recorded the latest restart of the whole replica: they are restarted too."""
    latest_restart: str = ""
    """When that restart was."""

    @property
    def requeue_at(self) -> float | None:
        return earliest(*(unit.due_at for unit in self.waiting))


def decide_terminations(
    snapshot: Snapshot,
    layout: ReplicaLayout,
    cliques: Mapping[str, CliqueState],
    history: TerminationHistory,
    updating: UpdatesInProgress,
    now: float,
) -> TerminationDecision:
    """Returns what becomes of the units of a replica."""
    if history.base not in snapshot.gangs:
        return TerminationDecision()
    breaches = find_breaches(snapshot, layout.groups, cliques, history, updating, now)
    units = _breached_units(snapshot, breaches, history, now)
    due = tuple(unit for unit in units if unit.due_at is not None and unit.due_at <= now)
    latest = _latest_restart(due, history, now)
    late = tuple(
        gang
        for gang in layout.gangs
        if latest and gang.name != history.base and not history.has_recorded(gang.name, latest)
    )
    changed = {unit.gang for unit in due} | {gang.name for gang in late}
    return TerminationDecision(
        due,
        waiting=tuple(unit for unit in units if unit.due_at is not None and unit.due_at > now),
        exhausted=tuple(unit for unit in units if unit.due_at is None),
        recovered=tuple(
            unit
            for gang in layout.gangs
            if gang.name not in changed
            for unit in _recovered_units(gang, cliques, history)
        ),
        late_gangs=late,
        latest_restart=latest,
    )


def _breached_units(
    snapshot: Snapshot, found: Breaches, history: TerminationHistory, now: float
) -> list[BreachedUnit]:
    delay = seconds(snapshot.workload.spec.template.termination_delay or DEFAULT_DELAY)

    def breached(name: str, gang: str, breaches: tuple[Breach, ...]) -> BreachedUnit:
        record = history.of_gang(gang).get(name)
        restarts, due_at = next_restart(record, min(breach.since for breach in breaches), delay)
        return BreachedUnit(name, gang, breaches, restarts, due_at)

    units: list[BreachedUnit] = []
    if found.of_replica:
        units.append(whole := breached(history.base, history.base, found.of_replica))
        if whole.due_at is not None and whole.due_at <= now:
            return units  # with all replicas of its groups
    for breaches in found.of_group_replicas:
        wanted = breaches[0].cliques[0].wanted
        if wanted.gang in snapshot.gangs:
            units.append(breached(unit_of(wanted), wanted.gang, breaches))
    return units


def next_restart(
    record: TerminationRecord | None, breached_since: float, delay: float
) -> tuple[int, float | None]:
    """How many restarts in a row a breached unit has had, by its record, and when the next one is due; None:
    there is none."""
    restarts = record.count if record is not None and not record.recovered else 0
    if restarts >= timing.GANG_RESTARTS:
        return restarts, None
    since = max(breached_since, record.timestamp if record is not None else 0.0)
    return restarts, since + delay * min(2**restarts, timing.TERMINATION_MAX_DELAY_FACTOR)


def _latest_restart(due: Sequence[BreachedUnit], history: TerminationHistory, now: float) -> str:
    """When the whole replica was last restarted, including a restart that is due; empty if never."""
    if any(unit.name == history.base for unit in due):
        return rfc3339(now)
    return history.latest.at if history.latest is not None else ""


def _recovered_units(
    gang: Gang, cliques: Mapping[str, CliqueState], history: TerminationHistory
) -> Iterator[RecoveredUnit]:
    for unit, record in history.of_gang(gang.name).items():
        parts = [clique for clique in gang.cliques if unit in (gang.name, unit_of(clique))]
        available = all(cliques[clique.name].view.available for clique in parts)
        if parts and available and not record.recovered:
            yield RecoveredUnit(unit, gang.name)
