"""Scenarios: what users and fate do to workloads. Each is a function of a world that says where it rests.

Told in fair weather, a scenario is a test and the measure for all other times it is told: whatever the
weather, every rest looks the same, and it came about by the same creates and deletes (see `telling`).
"""

from __future__ import annotations

from tests.cluster.operator.scenarios import (
    fabric,
    gates,
    ready,
    refusals,
    removal,
    renewal,
    repairs,
    scaling,
    sharing,
    takeover,
    termination,
    throng,
    told,
    wear,
)
from tests.cluster.operator.telling import Scenario

SCENARIOS: dict[str, Scenario] = {
    f"{room.__name__.rpartition('.')[2]}: {name.replace('_', ' ')}": scenario
    for room in (
        gates,
        ready,
        refusals,
        removal,
        renewal,
        repairs,
        scaling,
        sharing,
        takeover,
        termination,
        throng,
        told,
        wear,
        fabric,
    )
    for name, scenario in room.SCENARIOS.items()
}
