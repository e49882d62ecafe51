"""Upstream's topology scenarios: the PodGroups that the plan creates for KAI."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from grove.schedulers.kai import Kai
from grove.topology.constraints import ResolvedTopology
from tests.plan.simulator.simulator import Simulator
from tests.rules.builders import FACTS
from tests.schedulers.topology_scenarios import DOMAINS, SCENARIOS, TOPOLOGY, Scenario

FACTS = replace(FACTS, topologies={TOPOLOGY: tuple(DOMAINS)})


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_pod_groups_match_the_scenario(scenario: Scenario):
    body = default_set(scenario.body)
    body["metadata"] |= {"namespace": "ns", "uid": "u"}
    sim = Simulator(body)
    sim.scheduler, sim.topology = Kai(), ResolvedTopology(TOPOLOGY, DOMAINS, found=True)
    sim.settle()
    assert {
        name: sim.api.get("PodGroup", name)["spec"] for name in sim.api.all("PodGroup")
    } == scenario.pod_groups
    for name in scenario.pod_groups:
        gang = sim.api.get("PodGang", name)["metadata"]
        assert gang["annotations"]["grove.io/topology-name"] == TOPOLOGY
        assert gang["labels"]["grove.io/scheduler-name"] == "kai-scheduler"


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_scenario_set_is_admitted(scenario: Scenario):
    verdict = validation.on_create(default_set(scenario.body), FACTS)
    assert (verdict.message, verdict.warnings) == ("", ())
