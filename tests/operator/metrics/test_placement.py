"""What a round of placement counts, and the free slots of a topology."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY

from grove.operator.caches.registry import Caches
from grove.operator.metrics.placement import clear_free_slots, count_round, set_free_slots
from grove.operator.metrics.workloads import LeaderMetrics
from grove.plan.placement.assignment import Assignment, Decision, PodSlot, Waiting
from grove.plan.placement.state import GangState, Hold
from tests.plan.placement.gangs import demand

STATE = GangState(demand("a", 2))
FIRST, SECOND = {PodSlot("a", 0): "n0"}, {PodSlot("a", 0): "n1"}
DIRECT, NOMINATED = Assignment(nodes=FIRST), Assignment(nodes=FIRST, nominated=True)
MOVED = Assignment(nodes=SECOND, nominated=True)
RELEASED = replace(NOMINATED, released=True)
PARTIAL = Assignment(nodes={PodSlot("a", 0): ""})
COUNTERS = ("conflicts", "holds", "unschedulable", "retries")
DECISIONS = ("direct", "nominated", "partial", "waiting", "gave-up")


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"grove_placement_{name}_total", labels) or 0.0


def counts() -> dict[str, float]:
    return {name: value(name) for name in COUNTERS} | {
        name: value("decisions", decision=name) for name in DECISIONS
    }


def counted(old: GangState, new: GangState) -> set[str]:
    """What is counted for a change of one gang."""
    before = counts()
    count_round([old, GangState(demand("unchanged", 1))], {new.demand.gang: new})
    after = counts()
    assert all(after[name] - before[name] in (0, 1) for name in after)
    return {name for name in after if after[name] > before[name]}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, DIRECT, {"direct"}),
        (None, NOMINATED, {"nominated"}),
        (None, PARTIAL, {"partial"}),
        (None, Waiting("no place"), {"waiting"}),
        (None, Waiting("no answer", gave_up=True), {"gave-up"}),
        (Waiting("no place"), Waiting("still none"), set()),
        (Waiting("no place"), PARTIAL, {"partial"}),
        (Waiting("no place"), NOMINATED, {"nominated"}),
        (NOMINATED, RELEASED, set()),
        (NOMINATED, MOVED, {"nominated", "conflicts"}),
        (NOMINATED, DIRECT, {"direct", "conflicts"}),
        (NOMINATED, Waiting("no place"), {"waiting", "conflicts"}),
        (RELEASED, replace(RELEASED, failed=True), {"retries"}),
        (replace(RELEASED, failed=True), replace(RELEASED, failed=True), set()),
    ],
)
def test_changed_decision_is_counted(old: Decision | None, new: Decision, expected: set[str]) -> None:
    assert counted(replace(STATE, decision=old), replace(STATE, decision=new)) == expected


def test_hold_is_counted_once() -> None:
    waiting = replace(STATE, decision=Waiting("no place"))
    held = replace(waiting, hold=Hold(("r0",), FIRST, until=9.0))
    assert counted(waiting, held) == {"holds"}
    assert counted(held, replace(held, hold=Hold(("r0",), SECOND, until=9.0))) == set()
    assert counted(held, waiting) == set()


def test_unschedulable_pod_after_release_is_counted_once() -> None:
    released = replace(STATE, decision=RELEASED)
    assert counted(released, replace(released, stuck_since=5.0)) == {"unschedulable"}
    assert counted(replace(released, stuck_since=5.0), replace(released, stuck_since=5.0)) == set()


def test_free_slots_of_removed_level_are_not_published() -> None:
    def published(level: str) -> float | None:
        labels = {"topology": "t", "level": level, "gpus": "8"}
        return REGISTRY.get_sample_value("grove_topology_free_slots", labels)

    set_free_slots("t", {"block": {8: 4}, "rack": {8: 2}})
    assert (published("block"), published("rack")) == (4, 2)
    set_free_slots("t", {"rack": {8: 1}})
    assert (published("block"), published("rack")) == (None, 1)
    clear_free_slots("t")
    assert published("rack") is None


def test_free_slots_are_published_by_the_leader_only() -> None:
    labels = {"topology": "t", "level": "rack", "gpus": "8"}
    with LeaderMetrics(Caches()):
        set_free_slots("t", {"rack": {8: 1}})
        assert REGISTRY.get_sample_value("grove_topology_free_slots", labels) == 1
    assert REGISTRY.get_sample_value("grove_topology_free_slots", labels) is None
