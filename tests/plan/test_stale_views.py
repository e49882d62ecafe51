"""Caches lag, each kind by its own; leaders do not know that they have been replaced. Neither may cost a pod.

A plan is made from any mix of older states. What stops it is in the plan itself: writes of gangs and of
counts that fail if the object has changed. Which of several pods goes when some must is decided on how they
fare, and that may be old news; how many go, and that the ones that stay are the ones a gang names, may not.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given

from grove.plan import pods as state
from tests.plan import hands
from tests.plan.builders import a_set
from tests.plan.invariants import alive, check_history, check_settled, clique_of, expand_now, outline
from tests.plan.meddling import GENTLE, ROUGH, SCALING, Meddler, workloads
from tests.plan.test_properties import a_life, calm, chances, quick
from tests.plan.test_scaling import running
from tests.plan.world import KINDS, Run, World

ALL = (*GENTLE, *SCALING, *ROUGH)


def a_lag(chance: Random, kinds=tuple(KINDS), most: int = 8) -> dict[str, int]:
    return {kind: chance.randrange(most) if chance.random() < 0.6 else 0 for kind in kinds}


def names(world: World) -> set[str]:
    return {pod.metadata.name for pod in alive(world)}


def owned(world: World) -> set[str]:
    """Pods whose clique is there; of others the garbage collector takes care, sooner or later."""
    cliques = {body["metadata"]["uid"] for body in world.api.objects("PodClique")}
    return {pod.metadata.name for pod in alive(world) if state.controller_uid(pod.metadata) in cliques}


@quick
@given(workload=workloads(), chance=chances)
def test_with_pods_as_they_are_an_old_view_of_the_rest_costs_no_pod_that_should_stay(workload, chance):
    world = a_life(workload, chance, *ALL, length=20)
    fresh, stale = world.copy(), world.copy()
    fresh.step()
    stale.carry_out(stale.plan(lag=a_lag(chance, tuple(set(KINDS) - {"Pod"}))), chance)
    assert names(world) & owned(fresh) <= names(stale)
    check_history(stale, lagging=True)


@quick
@given(workload=workloads(), chance=chances)
def test_an_old_view_never_costs_more_pods_than_are_too_many(workload, chance):
    world = a_life(workload, chance, *GENTLE, *SCALING, "collect", length=20)
    before, wanted = alive(world), {clique.name: clique.replicas for clique in expand_now(world).cliques}
    world.carry_out(world.plan(lag=a_lag(chance)), chance)
    if world.api.get("PodCliqueSet", world.set_name)["spec"]["replicas"]:
        for clique, count in wanted.items():
            were, are = (sum(clique_of(pod) == clique for pod in pods) for pods in (before, alive(world)))
            assert are >= min(were, count), clique


@quick
@given(workload=workloads(), chance=chances)
def test_after_any_number_of_plans_from_old_views_all_is_as_it_should_be(workload, chance):
    world = World(workload)
    meddler = Meddler(world, chance)
    for _ in range(chance.randrange(20)):
        if chance.random() < 0.1:
            world.restart_operator()
        elif chance.random() < 0.6:
            world.carry_out(world.plan(lag=a_lag(chance)), chance)
        else:
            meddler.meddle(*ALL)
    check_history(world, lagging=True)
    calm(world)
    check_settled(world)


@quick
@given(workload=workloads(), chance=chances)
def test_two_leaders_at_once_come_to_the_same_end_as_one(workload, chance):
    world = a_life(workload, chance, *ALL)
    alone = world.copy()
    for _ in range(4):
        runs = [Run(world, world.plan(lag=a_lag(chance)), chance), Run(world, world.plan(), chance)]
        while runs:
            run = chance.choice(runs)
            if not run.go_on():
                runs.remove(run)
    calm(world)
    calm(alone)
    check_settled(world)
    assert outline(world) == outline(alone)
    check_history(world, zombies=True)


def test_a_seat_that_has_a_successor_gets_no_second_pod_from_whoever_knows_only_the_old_name():
    """The name is right in the old gang, the pod is gone and nobody remembers it: only the gang can tell."""
    world = running("a:1")
    (old,) = world.pods()
    before = len(world.api.past["PodGang"])
    hands.force_delete(world, old)
    world.settle()
    world.restart_operator()
    (new,) = world.pods()
    stale = world.plan(lag={"PodGang": len(world.api.past["PodGang"]) - before})
    assert any(intent.id == f"create Pod ns/{old}" for intent in stale.intents)
    assert not world.carry_out(stale)
    assert list(world.pods()) == [new]


def test_a_pod_that_is_about_to_be_taken_in_again_is_safe_from_whoever_has_the_old_count():
    """Scaled in, the operator died before it deleted the pod; scaled out again, there is room for it."""
    world = running("a:2/1")
    before = names(world)
    world.scale("PodClique", "wl-0-a", 1)
    run = Run(world, world.plan())
    run.go_on()
    run.go_on()
    assert len(world.references("wl-0")["wl-0-a"]) == 1
    world.scale("PodClique", "wl-0-a", 2)
    stale = world.plan(lag={"PodClique": 1})
    assert any(intent.id.startswith("delete Pod ") for intent in stale.intents)
    assert not world.carry_out(stale)
    world.settle()
    assert names(world) == before


def made(world: World) -> dict[str, int]:
    return {kind: len(world.api.all(kind)) for kind in KINDS}


def test_a_replica_that_was_scaled_away_is_not_made_again_by_whoever_has_the_old_count():
    """It has seen everything go, and knows not why; that all of it was there is in the status of the set."""
    world = World(a_set("a:2/1 b:1", "x:2/1=b", replicas=2))
    for index in (0, 1):
        world.settle(index)
    world.api.patch("PodCliqueSet", "wl", {"status": {"observedGeneration": 1}}, status=True)
    world.scale("PodCliqueSet", "wl", 1)
    world.settle(1)
    before = made(world)
    stale = world.plan(1, lag={"PodCliqueSet": 1})
    assert sum(intent.id.startswith("create Pod ") for intent in stale.intents) == 4
    assert not world.carry_out(stale)
    assert made(world) == before


@pytest.mark.parametrize("kind", ["Service", "PodGang", "PodClique", "PodCliqueScalingGroup"])
def test_a_part_of_a_replica_on_its_way_out_is_not_made_again(kind):
    world = running("a:1 b:1", "x:1/1=b")
    world.scale("PodCliqueSet", "wl", 0)
    name = sorted(world.api.all(kind))[0]
    world.api.delete(kind, name)
    stale = world.plan(lag={"PodCliqueSet": 1})
    assert any(intent.id == f"create {kind} ns/{name}" for intent in stale.intents)
    world.carry_out(stale)
    assert name not in world.api.all(kind)


def test_a_replica_of_a_group_that_was_scaled_away_is_not_made_again_by_whoever_has_the_old_count():
    world, kind = running("a:1 b:1", "x:3/1=b"), "PodCliqueScalingGroup"
    known = len(world.api.past[kind])
    world.scale(kind, "wl-0-x", 1)
    world.settle()
    before = made(world)
    stale = world.plan(lag={kind: len(world.api.past[kind]) - known})
    assert any(intent.id == "create PodClique ns/wl-0-x-2-b" for intent in stale.intents)
    assert not world.carry_out(stale)
    assert made(world) == before


def test_what_is_new_is_made_without_a_question():
    world = World(a_set("a:2/1 b:1", "x:2/1=b"))
    assert {intent.id.split()[0] for intent in world.plan().intents} == {"create"}
    world.settle()
    world.scale("PodCliqueScalingGroup", "wl-0-x", 3)
    assert {intent.id.split()[0] for intent in world.plan().intents} == {"create"}


def test_pods_that_went_with_their_clique_get_no_successors_from_whoever_has_not_seen_it_go():
    world = running("a:2/1")
    world.api.delete("PodClique", "wl-0-a")
    hands.collect_garbage(world)
    hands.finish_terminating(world)
    stale = world.plan(lag={"PodClique": 1})
    assert any(intent.id.startswith("create Pod ") for intent in stale.intents)
    assert not world.carry_out(stale)
    assert not world.pods()
    world.settle()
    assert len(world.pods()) == 2


def test_pods_that_go_with_their_clique_get_no_successors_either():
    world = running("a:2/1")
    world.api.delete("PodClique", "wl-0-a")
    hands.collect_garbage(world)
    leaving = set(world.pods())
    assert not world.carry_out(world.plan(lag={"PodClique": 1}))
    assert set(world.pods()) == leaving


@pytest.mark.parametrize("kind", ["Service", "PodGang", "PodClique", "PodCliqueScalingGroup"])
def test_what_was_orphaned_is_not_taken_back_by_whoever_has_not_seen_its_set_end(kind):
    world = running("a:1 b:1", "x:1/1=b")
    name = sorted(world.api.all(kind))[0]
    world.api.patch(kind, name, {"metadata": {"ownerReferences": None}})
    world.api.patch("PodCliqueSet", "wl", {"metadata": {"labels": {"it": "ends"}}})
    world.carry_out(world.plan(lag={"PodCliqueSet": 1}))
    assert "ownerReferences" not in world.api.get(kind, name)["metadata"]
    world.settle()
    assert len(world.api.get(kind, name)["metadata"]["ownerReferences"]) == 1
