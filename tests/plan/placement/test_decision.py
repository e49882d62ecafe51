"""Decisions on one gang."""

from __future__ import annotations

from functools import partial

import pytest

from grove.plan.placement import decision
from grove.plan.placement.assignment import Assignment, Decision, Waiting
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.decision import Circumstances, decide
from grove.topology.placement.solve import solve
from tests.plan.placement.gangs import RACK, demand, racks


def decided() -> Decision:
    capacity = ClusterCapacity()
    capacity.observe(racks(2, 4))
    return decide(capacity, demand("a", 4, required=RACK), Circumstances()).decision


def test_search_stopped_at_its_limit_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(decided(), Assignment)
    monkeypatch.setattr(decision, "solve", partial(solve, work_limit=1))
    found = decided()
    assert isinstance(found, Waiting)
    assert found.gave_up
    assert "stopped at its limit" in found.message
