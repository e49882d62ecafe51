"""Caches lag, each kind by its own; leaders do not know that they have been replaced. Neither may cost a pod.

A plan is made from any mix of older states. What stops it is in the plan itself: writes of gangs and of
counts that fail if the object has changed. Which of several pods goes when some must is decided on how they
fare, and that may be old news; how many go, and that the ones that stay are the ones a gang names, may not.
"""

from __future__ import annotations

from random import Random

from hypothesis import given

from grove.plan import pods as state
from tests.plan import hands
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
