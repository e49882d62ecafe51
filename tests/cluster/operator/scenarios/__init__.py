"""Scenarios: stories of user actions and failures of workloads. Each is a function of a `World` and has
checkpoints, at which the operator has nothing left to do.

The run without faults is a test by itself and the baseline for the runs with faults: with whatever faults,
every checkpoint has the same state, reached by the same creates and deletes (see `support.scenario_runs`).
"""

from __future__ import annotations

from tests.cluster.operator.placement import placed_gangs
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
    f"{module.__name__.rpartition('.')[2]}: {name}": scenario
    for module in (
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
        placed_gangs,
    )
    for name, scenario in module.SCENARIOS.items()
}
