"""Gang termination: restarts, as a whole, what has been below `minAvailable` for `terminationDelay`.

    a scaling group that keeps its minimum     -> only its broken replica
    any other clique or group below its own    -> the whole replica of the set

Only pods that were scheduled count as lost: a workload that waits for room is not terminated. A unit is
terminated once for a breach, and again only after its new pods have been scheduled. Pods are replaced,
PodCliques stay: counts belong to autoscalers and users. A unit that was not ready in between waits twice as
long each time, and after `GANG_RESTARTS` terminations in a row it is not restarted: a user investigates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.api.conditions import ConditionType
from grove.api.event_reasons import EventReason
from grove.api.meta import Condition
from grove.api.naming import annotations as keys
from grove.api.naming import names
from grove.plan.desired.expand import Clique, Gang, Group, ReplicaLayout
from grove.plan.members import pod_state
from grove.plan.members.clique_state import CliqueState, by_replica
from grove.plan.model import PlannedEvent
from grove.plan.rollout.planner import RolloutPlanner
from grove.plan.snapshot import Snapshot
from grove.plan.status.clique_and_group import RestartState, has_been_scheduled
from grove.plan.status.conditions import find
from grove.plan.termination import history
from grove.plan.termination.history import TerminationHistory, TerminationRecord
from grove.plan.timestamps import rfc3339, seconds, timestamp
from grove.plan.writes.builders import confirm_pod, reference
from grove.plan.writes.collector import WriteCollector

DEFAULT_DELAY = "4h0m0s"

Cliques = dict[str, CliqueState]
DecideMembers = Callable[[Clique, frozenset[str]], CliqueState]


class _Breach(Struct, frozen=True):
    """A clique or group that has been below `minAvailable` since a moment, by its status."""

    name: str
    since: float
    cliques: tuple[CliqueState, ...]


class TerminationPlanner:
    """The terminations of one replica."""

    def __init__(
        self,
        snapshot: Snapshot,
        layout: ReplicaLayout,
        writes: WriteCollector,
        decide_members: DecideMembers,
        now: float,
    ) -> None:
        self._snapshot, self._layout, self._writes = snapshot, layout, writes
        self._decide_members, self._now = decide_members, now
        self._base = names.base_gang(snapshot.workload.metadata.name, snapshot.index)
        self._delay = seconds(snapshot.workload.spec.template.termination_delay or DEFAULT_DELAY)
        self._written = {gang.name: history.read(snapshot.gangs.get(gang.name)) for gang in layout.gangs}
        self.records: dict[str, TerminationHistory] = dict(self._written)
        """The termination history that each gang should have."""
        self.exhausted: dict[str, str] = {}
        """Gangs with a unit that is not restarted any more, and the message of the condition about it."""
        self.events: list[PlannedEvent] = []
        self.requeue_at: float | None = None

    def plan(self, cliques: Cliques, rollout: RolloutPlanner) -> Cliques:
        """Plans terminations that are due; returns the cliques with their new members."""
        if self._base not in self._snapshot.gangs:
            return cliques
        restarted = dict(cliques)
        if self._due(self._base, self._base, self._breaches(cliques, rollout)):
            restarted |= self._restart(self._base, cliques.values())
        else:
            for group in self._layout.groups:
                if not self._updating(group, rollout):
                    restarted |= self._broken_replicas(group, by_replica(cliques.values(), group.name))
        restarted |= self._restart_scaled_gangs(cliques)
        self._record_recoveries(cliques)
        return restarted

    # Breaches.

    def _breaches(self, cliques: Cliques, rollout: RolloutPlanner) -> list[_Breach]:
        """Cliques and groups below `minAvailable` that require a restart of the whole replica."""
        found: list[_Breach] = []
        for name, clique in cliques.items():
            step = rollout.clique_steps.get(name)
            if clique.wanted.group is None and self._eligible(clique) and not (step and step.running):
                assert clique.found is not None
                found.append(_Breach(name, self._breached_since(clique.found.status.conditions), (clique,)))
        for group in self._layout.groups:
            replicas = by_replica(cliques.values(), group.name)
            known = self._snapshot.groups.get(group.name)
            breached = [one for inside in replicas.values() for one in inside if self._eligible(one)]
            if (
                known
                and breached
                and _is_below_min_available(group, replicas.values())
                and not self._updating(group, rollout)
            ):
                found.append(
                    _Breach(group.name, self._breached_since(known.status.conditions), tuple(breached))
                )
        return found

    def _updating(self, group: Group, rollout: RolloutPlanner) -> bool:
        step = rollout.group_steps.get(group.name)
        return step is not None and step.running

    def _eligible(self, clique: CliqueState) -> bool:
        """Breached, and its pods have been scheduled since its last restart."""
        return (
            clique.view.breached
            and self.was_scheduled(clique)
            and not self._is_restart_pending(clique.wanted.gang)
        )

    def was_scheduled(self, clique: CliqueState) -> bool:
        """Whether a clique has been scheduled since its last restart."""
        return clique.found is not None and has_been_scheduled(
            clique.found.status, clique.view, self.restart_state(clique.wanted)
        )

    def _breached_since(self, conditions: Sequence[Condition]) -> float:
        known = find(tuple(conditions), ConditionType.MIN_AVAILABLE_BREACHED)
        scheduled = find(tuple(conditions), ConditionType.WAS_SCHEDULED)
        if known is None or known.status != "True":
            return self._now  # the condition is not written yet
        scheduled_at = timestamp(scheduled.last_transition_time) if scheduled else 0.0
        return max(timestamp(known.last_transition_time), scheduled_at)

    def restart_state(self, clique: Clique) -> RestartState:
        """The latest restart of a clique, by written records. A planned restart may fail, and must not reset
        `WasScheduled`."""
        own = self._written.get(clique.gang, {})
        units = [own.get(_unit(clique)), own.get(self._base)]
        restarted_at = max((record.timestamp for record in units if record), default=0.0)
        return RestartState(restarted_at, pending=self._is_restart_pending(clique.gang))

    def _is_restart_pending(self, gang: str) -> bool:
        """Whether a scaled gang has not recorded the latest restart of the whole replica yet: its pods are
        from before."""
        latest = self._written.get(self._base, {}).get(self._base)
        known = self._written.get(gang, {}).get(self._base)
        return latest is not None and gang != self._base and (known is None or known.at != latest.at)

    @property
    def restarted_at(self) -> float:
        """When the whole replica was last restarted; 0 if never."""
        record = self._written.get(self._base, {}).get(self._base)
        return record.timestamp if record else 0.0

    # Delays.

    def _broken_replicas(self, group: Group, replicas: dict[int, list[CliqueState]]) -> Cliques:
        """Restarts breached replicas of a group that has `minAvailable` replicas without them."""
        restarted: Cliques = {}
        if _is_below_min_available(group, replicas.values()):
            return restarted
        for inside in replicas.values():
            wanted = inside[0].wanted
            breaches = [
                _Breach(one.wanted.name, self._breached_since(one.found.status.conditions), (one,))
                for one in inside
                if one.found is not None and self._eligible(one)
            ]
            if self._due(_unit(wanted), wanted.gang, breaches):
                restarted |= self._restart(_unit(wanted), inside)
        return restarted

    def _due(self, unit: str, gang: str, breaches: list[_Breach]) -> bool:
        """Whether a unit is restarted now; if later, sets `requeue_at`."""
        if not breaches or gang not in self._snapshot.gangs:
            return False
        record = self.records[gang].get(unit)
        consecutive = record.count if record and not record.recovered else 0
        worst = min(breaches, key=lambda breach: breach.since)
        if consecutive >= timing.GANG_RESTARTS:
            self.exhausted[gang] = (
                f"{unit} was restarted {consecutive} times in a row and was never ready: fix its pods, or "
                f"remove annotation {keys.TERMINATIONS} of the PodGang to restart it again"
            )
            return False
        delay = self._delay * min(2**consecutive, timing.TERMINATION_MAX_DELAY_FACTOR)
        due = max(worst.since, record.timestamp if record else 0.0) + delay
        if due > self._now:
            self.requeue_at = due if self.requeue_at is None else min(self.requeue_at, due)
            return False
        self._fence(breaches)
        self.records[gang] = {
            **self.records[gang],
            unit: TerminationRecord(rfc3339(self._now), consecutive + 1),
        }
        self._add_restart_event(unit, gang, worst)
        return True

    def _fence(self, breaches: Iterable[_Breach]) -> None:
        """Confirms what the breaches are based on: a stale cache must not terminate a gang."""
        self._fences = tuple(
            dict.fromkeys(
                write for breach in breaches for clique in breach.cliques for write in self._confirmed(clique)
            )
        )

    def _confirmed(self, clique: CliqueState) -> list[str]:
        assert clique.found is not None
        unready = [member.pod for member in clique.members if member.pod and not pod_state.ready(member.pod)]
        return [self._writes.confirm(clique.found), *(self._writes.add(confirm_pod(pod)) for pod in unready)]

    def _add_restart_event(self, unit: str, gang: str, worst: _Breach) -> None:
        whole_replica = unit == self._base
        reason = EventReason.SET_REPLICA_DELETED if whole_replica else EventReason.GROUP_REPLICA_DELETED
        note = (
            f"{unit} is restarted: {worst.name} was below minAvailable for {round(self._now - worst.since)} s"
        )
        self._add_event(gang, reason, note)

    def _add_event(self, gang: str, reason: EventReason, note: str) -> None:
        self.events.append(
            PlannedEvent(reference(self._snapshot.workload), reason, note, intent=self._gang_write_id(gang))
        )

    def _gang_write_id(self, gang: str) -> str:
        return f"patch PodGang {self._snapshot.workload.metadata.namespace}/{gang}"

    # Restarts.

    def _restart(self, unit: str, cliques: Iterable[CliqueState]) -> Cliques:
        """Replaces every member of the unit. Scaled gangs follow the record of the base gang."""
        own = [clique for clique in cliques if unit != self._base or clique.wanted.gang == self._base]
        return {clique.wanted.name: self._restarted(clique, self._fences) for clique in own}

    def _restart_scaled_gangs(self, cliques: Cliques) -> Cliques:
        """Restarts scaled gangs that have not recorded the latest restart of the whole replica."""
        latest, restarted = self.records[self._base].get(self._base), Cliques()
        if latest is None:
            return restarted
        written = (self._gang_write_id(self._base),)
        for gang in self._layout.gangs:
            own = self.records[gang.name]
            known = own.get(self._base)
            if gang.name == self._base or (known is not None and known.at == latest.at):
                continue
            self.records[gang.name] = {**own, self._base: TerminationRecord(latest.at)}
            if gang.name in self._snapshot.gangs:
                fences = written if self._changed(self._base) else ()
                for clique in gang.cliques:
                    restarted[clique.name] = self._restarted(cliques[clique.name], fences)
        return restarted

    def _record_recoveries(self, cliques: Cliques) -> None:
        """Records the recovery of units that are available again: the next breach starts a new count."""
        for gang in self._layout.gangs:
            if self._changed(gang.name) or gang.name not in self._snapshot.gangs:
                continue
            for unit, record in self.records[gang.name].items():
                parts = [clique for clique in gang.cliques if unit in (gang.name, _unit(clique))]
                recovered = all(cliques[clique.name].view.available for clique in parts)
                if not record.recovered and parts and recovered:
                    updated = replace(record, recovered=True)
                    self.records[gang.name] = {**self.records[gang.name], unit: updated}
                    self._add_event(gang.name, EventReason.RECOVERED, f"{unit} is ready again")

    def _restarted(self, clique: CliqueState, fences: tuple[str, ...]) -> CliqueState:
        all_members = frozenset(member.name for member in clique.members if member.pod is not None)
        return replace(self._decide_members(clique.wanted, all_members), fences=fences)

    def annotations(self, gang: Gang) -> dict[str, str]:
        """The annotations of a gang."""
        return history.to_annotation(self.records[gang.name])

    def _changed(self, gang: str) -> bool:
        return self.records[gang] != self._written[gang]


def _unit(clique: Clique) -> str:
    """The replica of a group that a clique belongs to; empty outside of groups."""
    return f"{clique.group.name}-{clique.group_replica}" if clique.group else ""


def _is_below_min_available(group: Group, replicas: Iterable[Sequence[CliqueState]]) -> bool:
    healthy = sum(not any(clique.view.breached for clique in inside) for inside in replicas)
    return group.replicas > 0 and healthy < group.min_available
