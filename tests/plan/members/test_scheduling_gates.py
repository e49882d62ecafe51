"""Pods of a scaled gang wait until the base gang is scheduled; pods of the base gang wait for nothing."""

from __future__ import annotations

from grove.api.naming.well_known import GANG_GATE
from tests.plan.builders import a_clique, a_set
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator


def gates(sim: Simulator, clique: str) -> list[list[str]]:
    return [[gate.name for gate in pod.spec.scheduling_gates] for pod in sim.pods(clique).values()]


def test_scaled_gang_is_gated_until_base_gang_is_scheduled():
    sim = Simulator(a_set("a:2/1 b:1", "x:2/1=b"))
    sim.settle()
    assert gates(sim, "wl-0-a") == [[], []]
    assert gates(sim, "wl-0-x-0-b") == [[]]
    assert gates(sim, "wl-0-x-1-b") == [[GANG_GATE]]
    actors.schedule(sim, next(iter(sim.pods("wl-0-a"))))
    assert sim.plan().intents == ()
    actors.schedule(sim, *sim.pods("wl-0-x-0-b"))
    plan = sim.step()
    assert [intent.id.split()[:2] for intent in plan.intents] == [["patch", "Pod"]]
    assert gates(sim, "wl-0-x-1-b") == [[]]


def test_pod_created_after_base_gang_scheduled_has_no_gate():
    sim = Simulator(a_set("a:1 b:1", "x:1/1=b"))
    sim.settle()
    actors.run_all(sim)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    sim.settle()
    assert gates(sim, "wl-0-x-1-b") == [[]]


def test_removed_gate_stays_removed_and_new_pods_are_gated():
    sim = Simulator(a_set("a:1 b:1", "x:2/1=b"))
    for _ in range(2):
        sim.settle()
        actors.run_all(sim)
    (lost,) = sim.pods("wl-0-a")
    actors.force_delete(sim, lost)
    (second,) = sim.pods("wl-0-x-1-b")
    actors.force_delete(sim, second)
    sim.settle()
    assert gates(sim, "wl-0-x-0-b") == [[]]
    assert gates(sim, "wl-0-x-1-b") == [[GANG_GATE]]


def test_base_gang_clique_scaled_to_0_is_not_waited_for():
    sim = Simulator(a_set("a:1 b:1", "x:2/1=b"))
    sim.settle()
    sim.scale("PodClique", "wl-0-a", 0)
    sim.settle()
    actors.run_all(sim)
    sim.settle()
    assert gates(sim, "wl-0-x-1-b") == [[]]


def test_gates_of_the_user_are_kept():
    body = a_set("a:1 b:1", "x:2/1=b")
    mine = [{"name": "example.com/mine"}]
    body["spec"]["template"]["cliques"][1] = a_clique("b:1", schedulingGates=mine)
    sim = Simulator(body)
    sim.settle()
    assert gates(sim, "wl-0-x-1-b") == [[GANG_GATE, "example.com/mine"]]
    for name in (*sim.pods("wl-0-a"), *sim.pods("wl-0-x-0-b")):
        sim.api.patch("Pod", name, {"spec": {"schedulingGates": None}})
        actors.schedule(sim, name)
    sim.settle()
    assert gates(sim, "wl-0-x-1-b") == [["example.com/mine"]]


def test_gate_removal_requires_uid_of_observed_pod():
    sim = Simulator(a_set("a:1 b:1", "x:2/1=b"))
    sim.settle()
    actors.run_all(sim)
    plan = sim.plan()
    (name,) = sim.pods("wl-0-x-1-b")
    gated = sim.api.get("Pod", name)
    actors.force_delete(sim, name)
    del gated["metadata"]["uid"]
    sim.api.create(gated)
    assert not sim.execute(plan)
    assert gates(sim, "wl-0-x-1-b") == [[GANG_GATE]]
