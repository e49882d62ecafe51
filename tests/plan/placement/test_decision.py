"""Decisions on one gang."""

from __future__ import annotations

from grove import timing
from grove.plan.placement.assignment import Assignment, Decision, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.decision import Circumstances, decide
from tests.plan.placement.gangs import RACK, demand, racks


def decided(work: int) -> Decision:
    capacity = ClusterCapacity()
    capacity.observe(racks(2, 4))
    return decide(capacity, demand("a", 4, required=RACK), Circumstances(work=work)).decision


def test_search_stopped_at_its_limit_is_marked() -> None:
    assert isinstance(decided(timing.PLACEMENT_WORK), Assignment)
    found = decided(1)
    assert isinstance(found, Waiting)
    assert found.gave_up
    assert "stopped at its limit" in found.message
