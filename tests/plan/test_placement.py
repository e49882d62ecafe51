"""Assignments: which gangs wait for one, and what follows from it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from grove.api.naming.well_known import GANG_GATE
from grove.plan.model import Plan
from grove.plan.placement import Assignment
from grove.plan.replica import plan_replica
from tests.plan.builders import a_clique, a_set
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator

RACK_1 = {"wl-0": Assignment({"wl-0-a": {"rack": "r1"}})}


def a_simulator() -> Simulator:
    body = a_set("a:1 b:1")
    body["spec"]["template"]["cliques"][0] = a_clique("a:1", nodeSelector={"gpu": "yes"})
    return Simulator(body)


def planned(sim: Simulator, placements: dict[str, Assignment] | None) -> Plan:
    return plan_replica(replace(sim.snapshot(), placements=placements), sim.now)


def pod_specs(sim: Simulator) -> dict[str, Any]:
    return {name.rpartition("-")[0]: sim.api.get("Pod", name)["spec"] for name in sim.pods()}


def gates(spec: dict[str, Any]) -> list[str]:
    return [gate["name"] for gate in spec.get("schedulingGates") or ()]


def test_without_assigner_no_gang_waits() -> None:
    sim = a_simulator()
    plan = planned(sim, None)
    sim.execute(plan)
    assert plan.awaiting_placement == ()
    assert not any(map(gates, pod_specs(sim).values()))
    assert pod_specs(sim)["wl-0-a"]["nodeSelector"] == {"gpu": "yes"}


def test_unassigned_gang_requests_placement_and_is_gated() -> None:
    sim = a_simulator()
    plan = planned(sim, {})
    sim.execute(plan)
    assert plan.awaiting_placement == ("wl-0",)
    assert [gates(spec) for spec in pod_specs(sim).values()] == [[GANG_GATE], [GANG_GATE]]
    assert planned(sim, {}).intents == ()


def test_assigned_gang_is_created_with_node_selector() -> None:
    sim = a_simulator()
    plan = planned(sim, RACK_1)
    sim.execute(plan)
    assert plan.awaiting_placement == ()
    specs = pod_specs(sim)
    assert not any(map(gates, specs.values()))
    assert specs["wl-0-a"]["nodeSelector"] == {"gpu": "yes", "rack": "r1"}
    assert "nodeSelector" not in specs["wl-0-b"]


def test_node_selector_and_gate_removal_are_one_write() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, {}))
    plan = planned(sim, RACK_1)
    assert [intent.id.split()[:2] for intent in plan.intents] == [["patch", "Pod"], ["patch", "Pod"]]
    sim.execute(plan)
    specs = pod_specs(sim)
    assert not any(map(gates, specs.values()))
    assert specs["wl-0-a"]["nodeSelector"] == {"gpu": "yes", "rack": "r1"}


def test_replacement_pod_gets_assignment_of_its_gang() -> None:
    sim = a_simulator()
    sim.execute(planned(sim, RACK_1))
    actors.run_all(sim)
    (lost,) = sim.pods("wl-0-a")
    actors.force_delete(sim, lost)
    for _ in range(3):
        sim.execute(planned(sim, RACK_1))
    (successor,) = sim.pods("wl-0-a")
    assert successor != lost
    assert pod_specs(sim)["wl-0-a"]["nodeSelector"]["rack"] == "r1"
