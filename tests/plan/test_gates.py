"""Pods of a scaled gang wait until the base gang is scheduled; pods of the base gang wait for nothing."""

from __future__ import annotations

from grove.api.marks import GANG_GATE
from tests.plan import hands
from tests.plan.builders import a_clique, a_set
from tests.plan.world import World


def gates(world: World, clique: str) -> list[list[str]]:
    return [[gate.name for gate in pod.spec.scheduling_gates] for pod in world.pods(clique).values()]


def test_only_a_scaled_gang_is_gated_and_only_until_the_base_gang_has_its_nodes():
    world = World(a_set("a:2/1 b:1", "x:2/1=b"))
    world.settle()
    assert gates(world, "wl-0-a") == [[], []]
    assert gates(world, "wl-0-x-0-b") == [[]]
    assert gates(world, "wl-0-x-1-b") == [[GANG_GATE]]
    hands.schedule(world, next(iter(world.pods("wl-0-a"))))
    assert world.plan().intents == ()
    hands.schedule(world, *world.pods("wl-0-x-0-b"))
    plan = world.step()
    assert [intent.id.split()[:2] for intent in plan.intents] == [["patch", "Pod"]]
    assert gates(world, "wl-0-x-1-b") == [[]]


def test_a_pod_made_after_the_base_gang_was_scheduled_is_born_without_a_gate():
    world = World(a_set("a:1 b:1", "x:1/1=b"))
    world.settle()
    hands.run_all(world)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    world.settle()
    assert gates(world, "wl-0-x-1-b") == [[]]


def test_an_open_gate_stays_open_when_the_base_gang_loses_a_node_and_new_pods_wait():
    world = World(a_set("a:1 b:1", "x:2/1=b"))
    for _ in range(2):
        world.settle()
        hands.run_all(world)
    (lost,) = world.pods("wl-0-a")
    hands.force_delete(world, lost)
    (second,) = world.pods("wl-0-x-1-b")
    hands.force_delete(world, second)
    world.settle()
    assert gates(world, "wl-0-x-0-b") == [[]]
    assert gates(world, "wl-0-x-1-b") == [[GANG_GATE]]


def test_a_base_gang_part_that_is_scaled_to_0_is_not_waited_for():
    world = World(a_set("a:1 b:1", "x:2/1=b"))
    world.settle()
    world.scale("PodClique", "wl-0-a", 0)
    world.settle()
    hands.run_all(world)
    world.settle()
    assert gates(world, "wl-0-x-1-b") == [[]]


def test_gates_of_the_user_are_kept_and_never_opened():
    body = a_set("a:1 b:1", "x:2/1=b")
    mine = [{"name": "example.com/mine"}]
    body["spec"]["template"]["cliques"][1] = a_clique("b:1", schedulingGates=mine)
    world = World(body)
    world.settle()
    assert gates(world, "wl-0-x-1-b") == [[GANG_GATE, "example.com/mine"]]
    for name in (*world.pods("wl-0-a"), *world.pods("wl-0-x-0-b")):
        world.api.patch("Pod", name, {"spec": {"schedulingGates": None}})
        hands.schedule(world, name)
    world.settle()
    assert gates(world, "wl-0-x-1-b") == [["example.com/mine"]]


def test_a_gate_is_taken_off_exactly_the_pod_that_was_seen():
    world = World(a_set("a:1 b:1", "x:2/1=b"))
    world.settle()
    hands.run_all(world)
    plan = world.plan()
    (name,) = world.pods("wl-0-x-1-b")
    gated = world.api.get("Pod", name)
    hands.force_delete(world, name)
    del gated["metadata"]["uid"]
    world.api.create(gated)
    assert not world.carry_out(plan)
    assert gates(world, "wl-0-x-1-b") == [[GANG_GATE]]
