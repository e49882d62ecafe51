"""Scenarios: what users and fate do to workloads. Each is a function of a world that says where it rests.

Told in fair weather, a scenario is a test and the measure for all other times it is told: whatever the
weather, every rest looks the same, and it came about by the same creates and deletes (see `telling`).
"""

from __future__ import annotations

from tests.cluster.operator.scenarios import (
    api_errors,
    deletion,
    fabric,
    gang_termination,
    gates,
    long_running,
    many_workloads,
    ready,
    repairs,
    scaling,
    scheduler_objects,
    shared_claims,
    updates,
    upstream_adoption,
)
from tests.cluster.operator.support.scenario_runs import Scenario

SCENARIOS: dict[str, Scenario] = {
    f"{room.__name__.rpartition('.')[2]}: {name.replace('_', ' ')}": scenario
    for room in (
        gates,
        ready,
        api_errors,
        deletion,
        updates,
        repairs,
        scaling,
        shared_claims,
        upstream_adoption,
        gang_termination,
        many_workloads,
        scheduler_objects,
        long_running,
        fabric,
    )
    for name, scenario in room.SCENARIOS.items()
}
