"""Properties of plans for any replica, after any history."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.plan.model import Plan
from grove.plan.replica import plan_replica
from grove.plan.writes.diff import status_patch
from tests.plan.simulator import actors
from tests.plan.simulator.invariants import check_floor, check_history, check_settled, outline
from tests.plan.simulator.random_changes import (
    GENTLE,
    ROUGH,
    SCALING,
    RandomChanges,
    sharing_workloads,
    workloads,
)
from tests.plan.simulator.simulator import Run, Simulator

chances = st.integers(0, 2**32).map(Random)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def random_history(workload, chance: Random, *kinds: str, length: int = 12) -> Simulator:
    """A simulator after random changes, with reconciles in between."""
    sim = Simulator(workload)
    changes = RandomChanges(sim, chance)
    for _ in range(chance.randrange(length)):
        if chance.random() < 0.5:
            sim.step()
        else:
            changes.apply_random(*kinds)
    return sim


def calm(sim: Simulator) -> None:
    """Runs until nothing changes: pods terminate, garbage is collected, back-offs expire, writes are done."""
    for _ in range(3):
        actors.collect_garbage(sim)
        actors.finish_terminating(sim)
        sim.now += 1000.0
        sim.settle()


def writes(plan: Plan) -> list[str]:
    return [intent.id for intent in plan.intents]


def breached(plan: Plan) -> bool:
    """Whether a clique is breached, so that it may have to be restarted."""
    facts = [fact for status_update in plan.status_updates for fact in status_update.desired.conditions]
    return any(fact.type == ConditionType.MIN_AVAILABLE_BREACHED and fact.status == "True" for fact in facts)


@quick
@given(workload=sharing_workloads(), chance=chances)
def test_settled_replica_plans_no_writes(workload, chance):
    sim = random_history(workload, chance, *GENTLE, *SCALING, *ROUGH)
    calm(sim)
    check_settled(sim)
    plan = sim.plan()
    assert writes(plan) == []
    assert [
        status_patch(status_update.current, status_update.desired) for status_update in plan.status_updates
    ] == [{}] * len(plan.status_updates)
    assert plan.requeue_at is None or breached(plan), "only a breached clique requeues"
    check_history(sim)


@quick
@given(workload=workloads(), chance=chances)
def test_only_statuses_are_written_once_a_plan_says_so(workload, chance):
    """Whatever pods then get their nodes or become ready, in any order."""
    sim = random_history(workload, chance, *GENTLE, *SCALING)
    calm(sim)
    for name in chance.sample(actors.living(sim), len(actors.living(sim))):
        before = sim.plan()
        chance.choice([actors.schedule, actors.run])(sim, name)
        after = sim.plan()
        assert not before.only_statuses_left or writes(after) == []
        sim.settle()


@quick
@given(workload=sharing_workloads(), chance=chances)
def test_plan_does_not_depend_on_order_of_objects(workload, chance):
    sim = random_history(workload, chance, *GENTLE, *SCALING, *ROUGH)
    snapshot = sim.snapshot()

    def shuffled(objects):
        return {name: objects[name] for name in chance.sample(sorted(objects), len(objects))}

    mixed = replace(
        snapshot,
        groups=shuffled(snapshot.groups),
        cliques=shuffled(snapshot.cliques),
        gangs=shuffled(snapshot.gangs),
        pods=tuple(chance.sample(snapshot.pods, len(snapshot.pods))),
    )
    assert by_id(plan_replica(mixed, sim.now)) == by_id(plan_replica(snapshot, sim.now))


def by_id(plan: Plan) -> tuple[object, ...]:
    intents = {intent.id: replace(intent, after=tuple(sorted(intent.after))) for intent in plan.intents}
    return (
        intents,
        {status_update.target: status_update for status_update in plan.status_updates},
        plan.requeue_at,
        plan.report,
    )


@quick
@given(workload=sharing_workloads(), chance=chances)
def test_partly_executed_plan_is_completed_by_next_plans(workload, chance):
    sim = random_history(workload, chance, *GENTLE, *SCALING, *ROUGH)
    finished, plan = sim.copy(), sim.plan()
    run = Run(sim, plan, chance)
    for _ in range(chance.randrange(len(plan.intents) + 1)):
        run.go_on()
    finished.execute(plan)
    calm(sim)
    calm(finished)
    assert outline(sim) == outline(finished)
    check_settled(sim)
    check_history(sim)


@quick
@given(workload=workloads(), chance=chances)
def test_plan_deletes_living_pods_only_above_the_count(workload, chance):
    sim = Simulator(workload)
    changes = RandomChanges(sim, chance)
    for _ in range(20):
        changes.apply_random(*GENTLE, *SCALING, "collect")
        plan = sim.plan()
        if sim.api.get("PodCliqueSet", sim.set_name)["spec"]["replicas"]:
            check_floor(sim, plan)
        sim.execute(plan)


@quick
@given(workload=workloads(), chance=chances)
def test_single_change_causes_few_writes(workload, chance):
    sim = Simulator(workload)
    for _ in range(4):
        sim.settle()
        actors.run_all(sim)
    calm(sim)
    before = len(sim.api.history)
    RandomChanges(sim, chance).apply_random(*GENTLE, *SCALING)
    sent = 0
    for _ in range(6):
        plan = sim.plan()
        sent += len(plan.intents)
        sim.execute(plan)
    changed = {write.key for write in sim.api.history[before:]}
    assert sent <= 2 * len(changed) + 2
