"""Caches lag, each kind by itself, and leaders do not know that they have been replaced. Neither may cost a
pod.

A plan is made from any mix of older states. It is stopped by its own preconditions: writes of gangs and of
counts that fail if the object has changed. Which of several surplus pods is deleted depends on their state,
which may be stale; how many are deleted, and that the remaining ones are those that a gang names, does not.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given

from grove.plan.members import pod_state
from tests.plan.builders import a_set
from tests.plan.convergence.test_properties import calm, chances, quick, random_history
from tests.plan.simulator import actors
from tests.plan.simulator.invariants import (
    alive,
    check_history,
    check_settled,
    clique_of,
    expand_now,
    outline,
)
from tests.plan.simulator.random_changes import GENTLE, ROUGH, SCALING, RandomChanges, workloads
from tests.plan.simulator.simulator import KINDS, Run, Simulator
from tests.plan.test_scaling import running

ALL = (*GENTLE, *SCALING, *ROUGH)


def a_lag(chance: Random, kinds=tuple(KINDS), most: int = 8) -> dict[str, int]:
    return {kind: chance.randrange(most) if chance.random() < 0.6 else 0 for kind in kinds}


def names(sim: Simulator) -> set[str]:
    return {pod.metadata.name for pod in alive(sim)}


def owned(sim: Simulator) -> set[str]:
    """Pods with an existing clique; the garbage collector deletes the others."""
    cliques = {body["metadata"]["uid"] for body in sim.api.objects("PodClique")}
    return {pod.metadata.name for pod in alive(sim) if pod_state.controller_uid(pod.metadata) in cliques}


@quick
@given(workload=workloads(), chance=chances)
def test_stale_caches_with_fresh_pods_delete_no_wanted_pod(workload, chance):
    sim = random_history(workload, chance, *ALL, length=20)
    fresh, stale = sim.copy(), sim.copy()
    fresh.step()
    stale.execute(stale.plan(lag=a_lag(chance, tuple(set(KINDS) - {"Pod"}))), chance)
    assert names(sim) & owned(fresh) <= names(stale)
    check_history(stale, lagging=True)


@quick
@given(workload=workloads(), chance=chances)
def test_stale_caches_never_delete_more_pods_than_surplus(workload, chance):
    sim = random_history(workload, chance, *GENTLE, *SCALING, "collect", length=20)
    before, wanted = alive(sim), {clique.name: clique.replicas for clique in expand_now(sim).cliques}
    sim.execute(sim.plan(lag=a_lag(chance)), chance)
    if sim.api.get("PodCliqueSet", sim.set_name)["spec"]["replicas"]:
        for clique, count in wanted.items():
            were, are = (sum(clique_of(pod) == clique for pod in pods) for pods in (before, alive(sim)))
            assert are >= min(were, count), clique


@quick
@given(workload=workloads(), chance=chances)
def test_plans_from_stale_caches_still_converge(workload, chance):
    sim = Simulator(workload)
    changes = RandomChanges(sim, chance)
    for _ in range(chance.randrange(20)):
        if chance.random() < 0.1:
            sim.restart_operator()
        elif chance.random() < 0.6:
            sim.execute(sim.plan(lag=a_lag(chance)), chance)
        else:
            changes.apply_random(*ALL)
    check_history(sim, lagging=True)
    calm(sim)
    check_settled(sim)


@quick
@given(workload=workloads(), chance=chances)
def test_two_leaders_at_once_converge_like_one(workload, chance):
    sim = random_history(workload, chance, *ALL)
    alone = sim.copy()
    for _ in range(4):
        runs = [Run(sim, sim.plan(lag=a_lag(chance)), chance), Run(sim, sim.plan(), chance)]
        while runs:
            run = chance.choice(runs)
            if not run.go_on():
                runs.remove(run)
    calm(sim)
    calm(alone)
    check_settled(sim)
    assert outline(sim) == outline(alone)
    check_history(sim, two_leaders=True)


def test_stale_gang_creates_no_second_pod_for_replaced_slot():
    """The name is in the stale gang, the pod is gone and its deletion not remembered: only the gang prevents
    the create."""
    sim = running("a:1")
    (old,) = sim.pods()
    before = len(sim.api.past["PodGang"])
    actors.force_delete(sim, old)
    sim.settle()
    sim.restart_operator()
    (new,) = sim.pods()
    stale = sim.plan(lag={"PodGang": len(sim.api.past["PodGang"]) - before})
    assert any(intent.id == f"create Pod ns/{old}" for intent in stale.intents)
    assert not sim.execute(stale)
    assert list(sim.pods()) == [new]


def test_stale_count_does_not_delete_pod_about_to_be_adopted():
    """After a scale-in the operator stopped before it deleted the pod; scaled out again, there is room for
    it."""
    sim = running("a:2/1")
    before = names(sim)
    sim.scale("PodClique", "wl-0-a", 1)
    run = Run(sim, sim.plan())
    run.go_on()
    run.go_on()
    assert len(sim.references("wl-0")["wl-0-a"]) == 1
    sim.scale("PodClique", "wl-0-a", 2)
    stale = sim.plan(lag={"PodClique": 1})
    assert any(intent.id.startswith("delete Pod ") for intent in stale.intents)
    assert not sim.execute(stale)
    sim.settle()
    assert names(sim) == before


def object_counts(sim: Simulator) -> dict[str, int]:
    return {kind: len(sim.api.all(kind)) for kind in KINDS}


def test_stale_set_count_does_not_recreate_deleted_replica():
    """The operator has observed the deletions and not the count; the status of the set says that the replica
    was complete."""
    sim = Simulator(a_set("a:2/1 b:1", "x:2/1=b", replicas=2))
    for index in (0, 1):
        sim.settle(index)
    sim.api.patch("PodCliqueSet", "wl", {"status": {"observedGeneration": 1}}, status=True)
    sim.scale("PodCliqueSet", "wl", 1)
    sim.settle(1)
    before = object_counts(sim)
    stale = sim.plan(1, lag={"PodCliqueSet": 1})
    assert sum(intent.id.startswith("create Pod ") for intent in stale.intents) == 4
    assert not sim.execute(stale)
    assert object_counts(sim) == before


@pytest.mark.parametrize("kind", ["Service", "PodGang", "PodClique", "PodCliqueScalingGroup"])
def test_stale_count_recreates_no_part_of_deleted_replica(kind):
    sim = running("a:1 b:1", "x:1/1=b")
    sim.scale("PodCliqueSet", "wl", 0)
    name = sorted(sim.api.all(kind))[0]
    sim.api.delete(kind, name)
    stale = sim.plan(lag={"PodCliqueSet": 1})
    assert any(intent.id == f"create {kind} ns/{name}" for intent in stale.intents)
    sim.execute(stale)
    assert name not in sim.api.all(kind)


def test_stale_group_count_does_not_recreate_group_replica():
    sim, kind = running("a:1 b:1", "x:3/1=b"), "PodCliqueScalingGroup"
    known = len(sim.api.past[kind])
    sim.scale(kind, "wl-0-x", 1)
    sim.settle()
    before = object_counts(sim)
    stale = sim.plan(lag={kind: len(sim.api.past[kind]) - known})
    assert any(intent.id == "create PodClique ns/wl-0-x-2-b" for intent in stale.intents)
    assert not sim.execute(stale)
    assert object_counts(sim) == before


def test_first_creation_needs_no_confirmation():
    sim = Simulator(a_set("a:2/1 b:1", "x:2/1=b"))
    assert {intent.id.split()[0] for intent in sim.plan().intents} == {"create"}
    sim.settle()
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 3)
    assert {intent.id.split()[0] for intent in sim.plan().intents} == {"create"}


def test_pods_deleted_with_unseen_clique_deletion_not_replaced():
    sim = running("a:2/1")
    sim.api.delete("PodClique", "wl-0-a")
    actors.collect_garbage(sim)
    actors.finish_terminating(sim)
    stale = sim.plan(lag={"PodClique": 1})
    assert any(intent.id.startswith("create Pod ") for intent in stale.intents)
    assert not sim.execute(stale)
    assert not sim.pods()
    sim.settle()
    assert len(sim.pods()) == 2


def test_pods_terminating_with_their_clique_not_replaced():
    sim = running("a:2/1")
    sim.api.delete("PodClique", "wl-0-a")
    actors.collect_garbage(sim)
    leaving = set(sim.pods())
    assert not sim.execute(sim.plan(lag={"PodClique": 1}))
    assert set(sim.pods()) == leaving


@pytest.mark.parametrize("kind", ["Service", "PodGang", "PodClique", "PodCliqueScalingGroup"])
def test_orphan_not_adopted_by_stale_set(kind):
    sim = running("a:1 b:1", "x:1/1=b")
    name = sorted(sim.api.all(kind))[0]
    sim.api.patch(kind, name, {"metadata": {"ownerReferences": None}})
    sim.api.patch("PodCliqueSet", "wl", {"metadata": {"labels": {"it": "ends"}}})
    sim.execute(sim.plan(lag={"PodCliqueSet": 1}))
    assert "ownerReferences" not in sim.api.get(kind, name)["metadata"]
    sim.settle()
    assert len(sim.api.get(kind, name)["metadata"]["ownerReferences"]) == 1
