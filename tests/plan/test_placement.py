"""Places: who waits for one, and what comes of it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from grove.api.marks import GANG_GATE
from grove.plan.model import Plan
from grove.plan.placement import Assignment
from grove.plan.replica import plan_replica
from tests.plan import hands
from tests.plan.builders import a_clique, a_set
from tests.plan.world import World

RACK_1 = {"wl-0": Assignment({"wl-0-a": {"rack": "r1"}})}


def a_world() -> World:
    body = a_set("a:1 b:1")
    body["spec"]["template"]["cliques"][0] = a_clique("a:1", nodeSelector={"gpu": "yes"})
    return World(body)


def planned(world: World, placements: dict[str, Assignment] | None) -> Plan:
    return plan_replica(replace(world.snapshot(), placements=placements), world.now)


def pod_specs(world: World) -> dict[str, Any]:
    return {name.rpartition("-")[0]: world.api.get("Pod", name)["spec"] for name in world.pods()}


def gates(spec: dict[str, Any]) -> list[str]:
    return [gate["name"] for gate in spec.get("schedulingGates") or ()]


def test_where_nobody_places_gangs_nobody_waits() -> None:
    world = a_world()
    plan = planned(world, None)
    world.carry_out(plan)
    assert plan.unplaced == ()
    assert not any(map(gates, pod_specs(world).values()))
    assert pod_specs(world)["wl-0-a"]["nodeSelector"] == {"gpu": "yes"}


def test_a_gang_without_a_place_asks_for_one_and_its_pods_wait() -> None:
    world = a_world()
    plan = planned(world, {})
    world.carry_out(plan)
    assert plan.unplaced == ("wl-0",)
    assert [gates(spec) for spec in pod_specs(world).values()] == [[GANG_GATE], [GANG_GATE]]
    assert planned(world, {}).intents == ()


def test_a_gang_that_has_its_place_is_born_there() -> None:
    world = a_world()
    plan = planned(world, RACK_1)
    world.carry_out(plan)
    assert plan.unplaced == ()
    specs = pod_specs(world)
    assert not any(map(gates, specs.values()))
    assert specs["wl-0-a"]["nodeSelector"] == {"gpu": "yes", "rack": "r1"}
    assert "nodeSelector" not in specs["wl-0-b"]


def test_the_place_and_the_open_gate_come_in_one_write() -> None:
    world = a_world()
    world.carry_out(planned(world, {}))
    plan = planned(world, RACK_1)
    assert [intent.id.split()[:2] for intent in plan.intents] == [["patch", "Pod"], ["patch", "Pod"]]
    world.carry_out(plan)
    specs = pod_specs(world)
    assert not any(map(gates, specs.values()))
    assert specs["wl-0-a"]["nodeSelector"] == {"gpu": "yes", "rack": "r1"}


def test_a_replacement_goes_where_the_gang_is() -> None:
    world = a_world()
    world.carry_out(planned(world, RACK_1))
    hands.run_all(world)
    (lost,) = world.pods("wl-0-a")
    hands.force_delete(world, lost)
    for _ in range(3):
        world.carry_out(planned(world, RACK_1))
    (successor,) = world.pods("wl-0-a")
    assert successor != lost
    assert pod_specs(world)["wl-0-a"]["nodeSelector"]["rack"] == "r1"
