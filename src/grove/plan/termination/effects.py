"""Turns a decision on gang termination into effects: members with successors, records, events.

Pods are replaced, PodCliques stay: counts belong to autoscalers and users. A restart is recorded on its gang,
in the write that names the successors. What the decision is based on is confirmed before that write: a stale
cache must not terminate a gang.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from grove.api.event_reasons import EventReason
from grove.api.naming import annotations as keys
from grove.plan.cliques.state import CliqueState, DecideMembers
from grove.plan.desired.expand import Gang
from grove.plan.members import pod_state
from grove.plan.model import PlannedEvent
from grove.plan.snapshot import Snapshot
from grove.plan.termination.decision import BreachedUnit, TerminationDecision
from grove.plan.termination.history import (
    Records,
    TerminationHistory,
    TerminationRecord,
    to_annotation,
    unit_of,
)
from grove.plan.timestamps import rfc3339
from grove.plan.writes.builders import confirm, confirm_pod, reference
from grove.plan.writes.collector import WriteCollector

Cliques = Mapping[str, CliqueState]


class TerminationEffects(Struct, frozen=True):
    """What follows from a decision."""

    cliques: Cliques
    """All cliques of the replica, with the members that they have after restarts."""
    records: Mapping[str, Records]
    """The records that each gang should have."""
    events: tuple[PlannedEvent, ...] = ()

    def annotations(self, gang: Gang) -> dict[str, str]:
        """The annotations of a gang."""
        return to_annotation(self.records.get(gang.name, {}))


def plan_effects(
    decision: TerminationDecision,
    snapshot: Snapshot,
    cliques: Cliques,
    history: TerminationHistory,
    writes: WriteCollector,
    decide_members: DecideMembers,
    now: float,
) -> TerminationEffects:
    """Plans the restarts of a replica."""
    fences = _restart_fences(decision, snapshot, cliques, history.base, writes)
    restarted = {name: _restart(cliques[name], after, decide_members) for name, after in fences.items()}
    return TerminationEffects(
        {**cliques, **restarted},
        {**history.records, **_new_records(decision, history, now)},
        tuple(_events(decision, snapshot, history.base, now)),
    )


def exhausted_messages(decision: TerminationDecision) -> dict[str, str]:
    """By gang with a unit that is not restarted any more, the message of the condition about it."""
    return {
        unit.gang: (
            f"{unit.name} was restarted {unit.restarts} times in a row and was never ready: fix its pods, or "
            f"remove annotation {keys.TERMINATIONS} of the PodGang to restart it again"
        )
        for unit in decision.exhausted
    }


def _restart_fences(
    decision: TerminationDecision, snapshot: Snapshot, cliques: Cliques, base: str, writes: WriteCollector
) -> dict[str, tuple[str, ...]]:
    """The cliques that are restarted, with the ids of the writes that must come before."""
    fences: dict[str, tuple[str, ...]] = {}
    for unit in decision.due:
        confirmed = tuple(dict.fromkeys(_confirm_breaches(unit, writes)))
        # Of the whole replica only the base gang: scaled gangs follow its record.
        fences |= {
            name: confirmed
            for name, clique in cliques.items()
            if (clique.wanted.gang if unit.name == base else unit_of(clique.wanted)) == unit.name
        }
    changes_base = any(unit.gang == base for unit in decision.due)
    for gang in decision.late_gangs:
        if gang.name in snapshot.gangs:
            after = (_write_id(snapshot, base),) if changes_base else ()
            fences |= {clique.name: after for clique in gang.cliques}
    return fences


def _confirm_breaches(unit: BreachedUnit, writes: WriteCollector) -> Iterator[str]:
    """Confirms the cliques and the pods that are not ready."""
    for breach in unit.breaches:
        for clique in breach.cliques:
            assert clique.found is not None
            yield writes.confirm(clique.found)
            for member in clique.members:
                if member.pod is not None and not pod_state.ready(member.pod):
                    yield writes.add(confirm_pod(member.pod))


def _restart(clique: CliqueState, fences: tuple[str, ...], decide_members: DecideMembers) -> CliqueState:
    """Replaces every member of a clique."""
    all_members = frozenset(member.name for member in clique.members if member.pod is not None)
    return replace(decide_members(clique.wanted, all_members), fences=fences)


def _new_records(
    decision: TerminationDecision, history: TerminationHistory, now: float
) -> dict[str, dict[str, TerminationRecord]]:
    """The records of the gangs that the decision changes."""
    changed: dict[str, dict[str, TerminationRecord]] = {}

    def record(gang: str, unit: str, new: TerminationRecord) -> None:
        changed.setdefault(gang, {**history.of_gang(gang)})[unit] = new

    for unit in decision.due:
        record(unit.gang, unit.name, TerminationRecord(rfc3339(now), unit.restarts + 1))
    for gang in decision.late_gangs:
        record(gang.name, history.base, TerminationRecord(decision.latest_restart))
    for known in decision.recovered:
        record(known.gang, known.name, replace(history.of_gang(known.gang)[known.name], recovered=True))
    return changed


def _events(
    decision: TerminationDecision, snapshot: Snapshot, base: str, now: float
) -> Iterator[PlannedEvent]:
    regarding = reference(snapshot.workload)
    for unit in decision.due:
        reason = EventReason.SET_REPLICA_DELETED if unit.name == base else EventReason.GROUP_REPLICA_DELETED
        lasted = round(now - unit.worst.since)
        note = f"{unit.name} is restarted: {unit.worst.name} was below minAvailable for {lasted} s"
        yield PlannedEvent(regarding, reason, note, intent=_write_id(snapshot, unit.gang))
    for known in decision.recovered:
        note = f"{known.name} is ready again"
        yield PlannedEvent(regarding, EventReason.RECOVERED, note, intent=_write_id(snapshot, known.gang))


def _write_id(snapshot: Snapshot, gang: str) -> str:
    """The id of the write that records something on a gang."""
    return confirm(snapshot.gangs[gang]).id
