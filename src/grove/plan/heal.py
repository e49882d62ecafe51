"""Gang termination: what has been short of pods for too long is started anew, as a whole.

    a scaling group that keeps its minimum     -> only its broken replica
    any other clique or group below its own    -> the whole replica of the set

Only who has had its pods on nodes can be short of them: a workload that waits for room is left alone. A unit
is terminated once for a breach, and again only after its new pods have had their nodes. Pods are replaced,
PodCliques stay: counts belong to whoever scales. What was never ready in between waits twice as long each
time, and after `BUDGET` terminations in a row it stays as it is, for people to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from grove.api import names
from grove.api.conditions import ConditionType
from grove.api.events import EventReason
from grove.api.meta import Condition
from grove.plan import pods as state
from grove.plan import records
from grove.plan.enrolment import Enrolled, by_replica
from grove.plan.expand import Clique, Gang, Group, Shape
from grove.plan.facts import find
from grove.plan.model import News
from grove.plan.moments import moment, rfc3339, seconds
from grove.plan.records import Record, Records
from grove.plan.renew import Renewal
from grove.plan.snapshot import Snapshot
from grove.plan.status import Life, has_had_nodes
from grove.plan.targets import confirm_pod
from grove.plan.writes import Writes

DELAY = "4h0m0s"
BUDGET = 5
_LONGEST = 16  # times the delay

Cliques = dict[str, Enrolled]
Enrol = Callable[[Clique, frozenset[str]], Enrolled]


class _Breach(Struct, frozen=True):
    """A part that has been short of pods since a moment, by what its status says."""

    name: str
    since: float
    cliques: tuple[Enrolled, ...]


class Healing:
    """The terminations of one replica."""

    def __init__(self, snapshot: Snapshot, shape: Shape, writes: Writes, enrol: Enrol, now: float) -> None:
        self._snapshot, self._shape, self._writes = snapshot, shape, writes
        self._enrol, self._now = enrol, now
        self._base = names.base_gang(snapshot.workload.metadata.name, snapshot.index)
        self._delay = seconds(snapshot.workload.spec.template.termination_delay or DELAY)
        self._written = {gang.name: records.read(snapshot.gangs.get(gang.name)) for gang in shape.gangs}
        self.records: dict[str, Records] = dict(self._written)
        """What each gang is to remember."""
        self.exhausted: dict[str, str] = {}
        """Gangs of which a unit will not be started anew any more, and what there is to say of it."""
        self.news: list[News] = []
        self.wake_at: float | None = None

    def plan(self, cliques: Cliques, renewal: Renewal) -> Cliques:
        """Plan terminations that are due; the cliques with their members of then."""
        if self._base not in self._snapshot.gangs:
            return cliques
        healed = dict(cliques)
        if self._due(self._base, self._base, self._breaches(cliques, renewal)):
            healed |= self._start_anew(self._base, cliques.values())
        else:
            for group in self._shape.groups:
                if not self._updating(group, renewal):
                    healed |= self._broken_replicas(group, by_replica(cliques.values(), group.name))
        healed |= self._latecomers(cliques)
        self._note_recoveries(cliques)
        return healed

    # Who is short of pods.

    def _breaches(self, cliques: Cliques, renewal: Renewal) -> list[_Breach]:
        """Parts that are short of pods and take the whole replica with them."""
        found: list[_Breach] = []
        for name, clique in cliques.items():
            step = renewal.of_cliques.get(name)
            if clique.wanted.group is None and self._eligible(clique) and not (step and step.running):
                assert clique.found is not None
                found.append(_Breach(name, self._since(clique.found.status.conditions), (clique,)))
        for group in self._shape.groups:
            replicas = by_replica(cliques.values(), group.name)
            known = self._snapshot.groups.get(group.name)
            guilty = [one for inside in replicas.values() for one in inside if self._eligible(one)]
            if known and guilty and _short(group, replicas.values()) and not self._updating(group, renewal):
                found.append(_Breach(group.name, self._since(known.status.conditions), tuple(guilty)))
        return found

    def _updating(self, group: Group, renewal: Renewal) -> bool:
        step = renewal.of_groups.get(group.name)
        return step is not None and step.running

    def _eligible(self, clique: Enrolled) -> bool:
        """Short of pods, and its pods had their nodes since it was last started anew."""
        return clique.view.breached and self.had_nodes(clique) and not self._behind(clique.wanted.gang)

    def had_nodes(self, clique: Enrolled) -> bool:
        """Whether a clique has had its pods on nodes since it was last started anew."""
        return clique.found is not None and has_had_nodes(
            clique.found.status, clique.view, self.life(clique.wanted)
        )

    def _since(self, conditions: Sequence[Condition]) -> float:
        known = find(tuple(conditions), ConditionType.MIN_AVAILABLE_BREACHED)
        had = find(tuple(conditions), ConditionType.WAS_SCHEDULED)
        if known is None or known.status != "True":
            return self._now  # it has not been said yet
        return max(moment(known.last_transition_time), moment(had.last_transition_time) if had else 0.0)

    def life(self, clique: Clique) -> Life:
        """The time since the clique was last started anew. What is only planned may come to nothing, and must
        not make it forget that it had its nodes."""
        own = self._written.get(clique.gang, {})
        units = [own.get(_unit(clique)), own.get(self._base)]
        born = max((record.moment for record in units if record), default=0.0)
        return Life(born, over=self._behind(clique.gang))

    def _behind(self, gang: str) -> bool:
        """Whether a scaled gang does not know yet that the whole replica is started anew: its pods are those
        of before."""
        latest = self._written.get(self._base, {}).get(self._base)
        known = self._written.get(gang, {}).get(self._base)
        return latest is not None and gang != self._base and (known is None or known.at != latest.at)

    @property
    def terminated(self) -> float:
        """When the whole replica was last started anew; 0 if never."""
        record = self._written.get(self._base, {}).get(self._base)
        return record.moment if record else 0.0

    # Whether its time has come.

    def _broken_replicas(self, group: Group, replicas: dict[int, list[Enrolled]]) -> Cliques:
        """Replicas of a group that can do without them."""
        healed: Cliques = {}
        if _short(group, replicas.values()):
            return healed
        for inside in replicas.values():
            wanted = inside[0].wanted
            breaches = [
                _Breach(one.wanted.name, self._since(one.found.status.conditions), (one,))
                for one in inside
                if one.found is not None and self._eligible(one)
            ]
            if self._due(_unit(wanted), wanted.gang, breaches):
                healed |= self._start_anew(_unit(wanted), inside)
        return healed

    def _due(self, unit: str, gang: str, breaches: list[_Breach]) -> bool:
        """Whether a unit is to be started anew now; if that is later, look again then."""
        if not breaches or gang not in self._snapshot.gangs:
            return False
        record = self.records[gang].get(unit)
        in_a_row = record.count if record and not record.recovered else 0
        worst = min(breaches, key=lambda breach: breach.since)
        if in_a_row >= BUDGET:
            self.exhausted[gang] = f"{unit} was started anew {in_a_row} times and has never been ready"
            return False
        delay = self._delay * min(2**in_a_row, _LONGEST)
        due = max(worst.since, record.moment if record else 0.0) + delay
        if due > self._now:
            self.wake_at = due if self.wake_at is None else min(self.wake_at, due)
            return False
        self._fence(breaches)
        self.records[gang] = {**self.records[gang], unit: Record(rfc3339(self._now), in_a_row + 1)}
        self._tell(unit, gang, worst)
        return True

    def _fence(self, breaches: Iterable[_Breach]) -> None:
        """What is believed to be broken is confirmed to be so: an old view must not cost a gang."""
        self._fences = tuple(
            dict.fromkeys(
                write for breach in breaches for clique in breach.cliques for write in self._confirmed(clique)
            )
        )

    def _confirmed(self, clique: Enrolled) -> list[str]:
        assert clique.found is not None
        ailing = [member.pod for member in clique.members if member.pod and not state.ready(member.pod)]
        return [self._writes.confirm(clique.found), *(self._writes.add(confirm_pod(pod)) for pod in ailing)]

    def _tell(self, unit: str, gang: str, worst: _Breach) -> None:
        whole = unit == self._base
        reason = EventReason.SET_REPLICA_DELETED if whole else EventReason.GROUP_REPLICA_DELETED
        note = (
            f"{unit} is started anew: {worst.name} was short of pods for {round(self._now - worst.since)} s"
        )
        self._news(gang, reason, note)

    def _news(self, gang: str, reason: EventReason, note: str) -> None:
        self.news.append(News(self._write_of(gang), reason, note))

    def _write_of(self, gang: str) -> str:
        return f"patch PodGang {self._snapshot.workload.metadata.namespace}/{gang}"

    # What then happens.

    def _start_anew(self, unit: str, cliques: Iterable[Enrolled]) -> Cliques:
        """Every member of the unit gets a successor. Gangs of their own follow the base gang's record."""
        mine = [clique for clique in cliques if unit != self._base or clique.wanted.gang == self._base]
        return {clique.wanted.name: self._renewed(clique, self._fences) for clique in mine}

    def _latecomers(self, cliques: Cliques) -> Cliques:
        """Scaled gangs that do not know yet that the whole replica is started anew."""
        latest, healed = self.records[self._base].get(self._base), Cliques()
        if latest is None:
            return healed
        written = (self._write_of(self._base),)
        for gang in self._shape.gangs:
            mine = self.records[gang.name]
            known = mine.get(self._base)
            if gang.name == self._base or (known is not None and known.at == latest.at):
                continue
            self.records[gang.name] = {**mine, self._base: Record(latest.at)}
            if gang.name in self._snapshot.gangs:
                fences = written if self._changed(self._base) else ()
                for clique in gang.cliques:
                    healed[clique.name] = self._renewed(cliques[clique.name], fences)
        return healed

    def _note_recoveries(self, cliques: Cliques) -> None:
        """Units that are well again, all of them: what happens next is another story."""
        for gang in self._shape.gangs:
            if self._changed(gang.name) or gang.name not in self._snapshot.gangs:
                continue
            for unit, record in self.records[gang.name].items():
                parts = [clique for clique in gang.cliques if unit in (gang.name, _unit(clique))]
                well = all(cliques[clique.name].view.available for clique in parts)
                if not record.recovered and parts and well:
                    noted = replace(record, recovered=True)
                    self.records[gang.name] = {**self.records[gang.name], unit: noted}
                    self._news(gang.name, EventReason.RECOVERED, f"{unit} is ready again")

    def _renewed(self, clique: Enrolled, fences: tuple[str, ...]) -> Enrolled:
        everybody = frozenset(member.name for member in clique.members if member.pod is not None)
        return replace(self._enrol(clique.wanted, everybody), fences=fences)

    def notes(self, gang: Gang) -> dict[str, str]:
        """What the gang is annotated with."""
        return records.written(self.records[gang.name])

    def _changed(self, gang: str) -> bool:
        return self.records[gang] != self._written[gang]


def _unit(clique: Clique) -> str:
    """The replica of a group that a clique belongs to."""
    return f"{clique.group.name}-{clique.group_replica}" if clique.group else ""


def _short(group: Group, replicas: Iterable[Sequence[Enrolled]]) -> bool:
    sound = sum(not any(clique.view.breached for clique in inside) for inside in replicas)
    return group.replicas > 0 and sound < group.min_available
