"""Which units are terminated now, later or not any more, from breaches, records and the time."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.api.meta import Condition, ObjectMeta
from grove.api.types.podclique import PodClique, PodCliqueStatus
from grove.api.types.podcliquescalinggroup import (
    PodCliqueScalingGroup,
    PodCliqueScalingGroupSpec,
    PodCliqueScalingGroupStatus,
)
from grove.api.types.podgang import PodGang, PodGangSpec
from grove.plan.cliques.health import CliqueHealth
from grove.plan.cliques.state import CliqueState
from grove.plan.desired.expand import ReplicaLayout, expand
from grove.plan.members.counts import PodCounts
from grove.plan.members.membership import Membership
from grove.plan.rollout.progress import UpdatesInProgress
from grove.plan.snapshot import Snapshot
from grove.plan.termination.decision import TerminationDecision, decide_terminations, next_restart
from grove.plan.termination.history import TerminationHistory, TerminationRecord, to_annotation
from grove.plan.timestamps import rfc3339
from grove.plan.writes.builders import reference
from tests.plan.builders import NAMESPACE, a_set, read_set

NOW = 1_800_000_000.0
DELAY = 10.0


def conditions(since: float, status: str = "True") -> tuple[Condition, ...]:
    return (
        Condition(ConditionType.WAS_SCHEDULED, "True", last_transition_time=rfc3339(NOW - 1000)),
        Condition(ConditionType.MIN_AVAILABLE_BREACHED, status, last_transition_time=rfc3339(since)),
    )


class Replica:
    """Replica 0 of a set whose cliques are all available, except for those that are `down`: they have been
    breached for as many seconds as the mapping says."""

    def __init__(self, cliques: str, groups: str = "", down: dict[str, float] | None = None) -> None:
        workload = read_set(a_set(cliques, groups, terminationDelay=f"{DELAY:g}s"))
        self.layout: ReplicaLayout = expand(workload, 0, {}, {})
        self.down = {f"wl-0-{name}": seconds for name, seconds in (down or {}).items()}
        self.snapshot = Snapshot(
            workload,
            0,
            groups={group.name: self._group(group.name) for group in self.layout.groups},
            gangs={gang.name: a_gang(gang.name) for gang in self.layout.gangs},
        )
        self.cliques = {clique.name: self._state(clique) for clique in self.layout.cliques}

    def _group(self, name: str) -> PodCliqueScalingGroup:
        lasted = [seconds for clique, seconds in self.down.items() if clique.startswith(name)]
        status = PodCliqueScalingGroupStatus(conditions=conditions(NOW - max(lasted, default=0.0)))
        spec = PodCliqueScalingGroupSpec(clique_names=())
        return PodCliqueScalingGroup(metadata=meta(name), spec=spec, status=status)

    def _state(self, wanted: Any) -> CliqueState:
        lost = wanted.name in self.down
        ready = 0 if lost else wanted.replicas
        counts = PodCounts(wanted.replicas, ready, wanted.replicas, unhealthy=wanted.replicas - ready)
        status = PodCliqueStatus(conditions=conditions(NOW - self.down.get(wanted.name, 0.0)))
        found = PodClique(metadata=meta(wanted.name), spec=wanted.template.spec, status=status)
        return CliqueState(wanted, found, reference(found), Membership(()), CliqueHealth(wanted, counts))

    def record(self, gang: str, **records: TerminationRecord) -> None:
        """The gang has these records, by unit, with `_` for `-`."""
        by_unit = {unit.replace("_", "-"): record for unit, record in records.items()}
        annotated = a_gang(gang, **to_annotation(by_unit))
        self.snapshot = replace(self.snapshot, gangs={**self.snapshot.gangs, gang: annotated})

    def decide(self, updating: UpdatesInProgress | None = None) -> TerminationDecision:
        history = TerminationHistory(self.snapshot)
        updating = updating or UpdatesInProgress()
        return decide_terminations(self.snapshot, self.layout, self.cliques, history, updating, NOW)


def a_gang(name: str, **annotations: str) -> PodGang:
    return PodGang(metadata=replace(meta(name), annotations=annotations), spec=PodGangSpec(()))


def meta(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=NAMESPACE, uid=f"uid-{name}")


def names(units: Any) -> list[str]:
    return [unit.name for unit in units]


def ago(seconds: float, count: int = 1, recovered: bool = False) -> TerminationRecord:
    return TerminationRecord(rfc3339(NOW - seconds), count, recovered)


RESTARTS = {
    # the record of the unit, seconds that it has been breached; restarts in a row, seconds until the next
    "no record": (None, 0, (0, 10)),
    "breached for long": (None, 25, (0, -15)),
    "second restart waits twice as long": (ago(100), 5, (1, 15)),
    "since the restart, not before": (ago(5), 50, (1, 15)),
    "third restart": (ago(100, 2), 0, (2, 40)),
    "fifth restart": (ago(1000, 4), 0, (4, 160)),
    "no sixth restart": (ago(1000, 5), 500, (5, None)),
    "recovered starts again": (ago(100, 5, recovered=True), 0, (0, 10)),
}


@pytest.mark.parametrize("row", RESTARTS.values(), ids=RESTARTS)
def test_next_restart_backs_off_and_ends(row):
    record, breached, (restarts, due) = row
    expected = None if due is None else NOW + due
    assert next_restart(record, NOW - breached, DELAY) == (restarts, expected)


SHAPE = ("a:2/2 b:1 c:3/3", "x:3/2=b,c")
UNITS = {
    # cliques that are down, with seconds; units that are due, and units that wait
    "nothing down": ({}, [], []),
    "clique for too short": ({"a": 9}, [], ["wl-0"]),
    "clique for long enough": ({"a": 10}, ["wl-0"], []),
    "one group replica of the base gang": ({"x-0-c": 10}, ["wl-0-x-0"], []),
    "one group replica of a scaled gang": ({"x-2-b": 10}, ["wl-0-x-2"], []),
    "both cliques of a replica, the older one counts": ({"x-2-b": 3, "x-2-c": 11}, ["wl-0-x-2"], []),
    "group below its minimum": ({"x-0-c": 10, "x-1-b": 10}, ["wl-0"], []),
    "group below its minimum for too short": ({"x-0-c": 9, "x-1-b": 9}, [], ["wl-0"]),
    "whole replica includes group replicas": ({"a": 10, "x-2-b": 10}, ["wl-0"], []),
    "group replica does not wait for the whole": ({"a": 5, "x-2-b": 10}, ["wl-0-x-2"], ["wl-0"]),
}


@pytest.mark.parametrize("row", UNITS.values(), ids=UNITS)
def test_breached_units_are_due_after_the_delay(row):
    down, due, waiting = row
    decision = Replica(*SHAPE, down=down).decide()
    assert (names(decision.due), names(decision.waiting)) == (due, waiting)
    assert (decision.exhausted, decision.recovered) == ((), ())
    assert (decision.requeue_at is not None) == bool(waiting)


def test_waiting_units_requeue_at_the_earliest_time():
    decision = Replica(*SHAPE, down={"a": 2, "x-2-b": 7}).decide()
    assert names(decision.waiting) == ["wl-0", "wl-0-x-2"]
    assert decision.requeue_at == NOW + 3


def test_updated_parts_are_not_terminated():
    replica = Replica(*SHAPE, down={"a": 50, "x-0-c": 50})
    assert names(replica.decide().due) == ["wl-0"]
    cliques, groups = frozenset({"wl-0-a"}), frozenset({"wl-0-x"})
    assert names(replica.decide(UpdatesInProgress(cliques)).due) == ["wl-0-x-0"]
    assert replica.decide(UpdatesInProgress(cliques, groups)) == TerminationDecision()


def test_unit_with_all_restarts_is_exhausted():
    replica = Replica(*SHAPE, down={"a": 5000})
    replica.record("wl-0", wl_0=ago(1000, 5))
    replica.record("wl-0-x-0", wl_0=ago(1000))
    decision = replica.decide()
    assert names(decision.exhausted) == ["wl-0"]
    assert (decision.due, decision.waiting, decision.late_gangs) == ((), (), ())


def test_available_unit_is_recovered_once():
    replica = Replica(*SHAPE, down={"a": 1})
    replica.record("wl-0", wl_0=ago(100), wl_0_x_0=ago(100), wl_0_x_1=ago(100, recovered=True))
    replica.record("wl-0-x-0", wl_0=ago(100))
    decision = replica.decide()
    assert names(decision.recovered) == ["wl-0-x-0"], "of the whole replica, one clique is down"


def test_scaled_gang_without_latest_restart_is_late():
    replica = Replica(*SHAPE)
    replica.record("wl-0", wl_0=ago(100, recovered=True))
    decision = replica.decide()
    assert names(decision.late_gangs) == ["wl-0-x-0"]
    assert decision.latest_restart == rfc3339(NOW - 100)
    replica.record("wl-0-x-0", wl_0=ago(100))
    assert replica.decide() == TerminationDecision(latest_restart=rfc3339(NOW - 100))


def test_restart_of_whole_replica_includes_scaled_gangs():
    decision = Replica(*SHAPE, down={"a": 10}).decide()
    assert names(decision.late_gangs) == ["wl-0-x-0"]
    assert decision.latest_restart == rfc3339(NOW)


def test_breach_without_written_condition_starts_now():
    replica = Replica("a:1", down={"a": 50})
    found = replica.cliques["wl-0-a"].found
    assert found is not None
    unwritten = replace(found, status=PodCliqueStatus(conditions=conditions(NOW - 50, "False")))
    replica.cliques["wl-0-a"] = replace(replica.cliques["wl-0-a"], found=unwritten)
    (unit,) = replica.decide().waiting
    assert unit.due_at == NOW + DELAY


def test_replica_without_base_gang_is_not_terminated():
    replica = Replica("a:1", down={"a": 50})
    replica.snapshot = replace(replica.snapshot, gangs={})
    assert replica.decide() == TerminationDecision()
