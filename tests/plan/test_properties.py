"""What holds for plans of any replica, whatever has happened to it before."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.plan.diff import status_patch
from grove.plan.model import Plan
from grove.plan.replica import plan_replica
from tests.plan import hands
from tests.plan.invariants import check_floor, check_history, check_settled, outline
from tests.plan.meddling import GENTLE, ROUGH, SCALING, Meddler, sharing_workloads, workloads
from tests.plan.world import Run, World

chances = st.integers(0, 2**32).map(Random)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def a_life(workload, chance: Random, *kinds: str, length: int = 12) -> World:
    """A world in which things have happened, with the operator looking on now and then."""
    world = World(workload)
    meddler = Meddler(world, chance)
    for _ in range(chance.randrange(length)):
        if chance.random() < 0.5:
            world.step()
        else:
            meddler.meddle(*kinds)
    return world


def calm(world: World) -> None:
    """Until nothing more happens: what terminates ends, garbage is collected, back-offs pass, all is done."""
    for _ in range(3):
        hands.collect_garbage(world)
        hands.finish_terminating(world)
        world.now += 1000.0
        world.settle()


def writes(plan: Plan) -> list[str]:
    return [intent.id for intent in plan.intents]


def breached(plan: Plan) -> bool:
    """Whether a clique is short of pods, for which it may have to be started anew."""
    facts = [fact for draft in plan.drafts for fact in draft.desired.conditions]
    return any(fact.type == ConditionType.MIN_AVAILABLE_BREACHED and fact.status == "True" for fact in facts)


@quick
@given(workload=sharing_workloads(), chance=chances)
def test_planned_again_there_is_nothing_to_do(workload, chance):
    world = a_life(workload, chance, *GENTLE, *SCALING, *ROUGH)
    calm(world)
    check_settled(world)
    plan = world.plan()
    assert writes(plan) == []
    assert [status_patch(draft.current, draft.desired) for draft in plan.drafts] == [{}] * len(plan.drafts)
    assert plan.wake_at is None or breached(plan), "only who is short of pods is looked at again"
    check_history(world)


@quick
@given(workload=sharing_workloads(), chance=chances)
def test_the_order_in_which_things_are_seen_does_not_matter(workload, chance):
    world = a_life(workload, chance, *GENTLE, *SCALING, *ROUGH)
    snapshot = world.snapshot()

    def shuffled(things):
        return {name: things[name] for name in chance.sample(sorted(things), len(things))}

    mixed = replace(
        snapshot,
        groups=shuffled(snapshot.groups),
        cliques=shuffled(snapshot.cliques),
        gangs=shuffled(snapshot.gangs),
        pods=tuple(chance.sample(snapshot.pods, len(snapshot.pods))),
    )
    assert by_id(plan_replica(mixed, world.now)) == by_id(plan_replica(snapshot, world.now))


def by_id(plan: Plan) -> tuple[object, ...]:
    intents = {intent.id: replace(intent, after=tuple(sorted(intent.after))) for intent in plan.intents}
    return intents, {draft.target: draft for draft in plan.drafts}, plan.wake_at, plan.standing


@quick
@given(workload=sharing_workloads(), chance=chances)
def test_whatever_part_of_a_plan_was_done_the_next_plans_finish_it(workload, chance):
    world = a_life(workload, chance, *GENTLE, *SCALING, *ROUGH)
    finished, plan = world.copy(), world.plan()
    run = Run(world, plan, chance)
    for _ in range(chance.randrange(len(plan.intents) + 1)):
        run.go_on()
    finished.carry_out(plan)
    calm(world)
    calm(finished)
    assert outline(world) == outline(finished)
    check_settled(world)
    check_history(world)


@quick
@given(workload=workloads(), chance=chances)
def test_a_plan_deletes_living_pods_only_beyond_the_count(workload, chance):
    world = World(workload)
    meddler = Meddler(world, chance)
    for _ in range(20):
        meddler.meddle(*GENTLE, *SCALING, "collect")
        plan = world.plan()
        if world.api.get("PodCliqueSet", world.set_name)["spec"]["replicas"]:
            check_floor(world, plan)
        world.carry_out(plan)


@quick
@given(workload=workloads(), chance=chances)
def test_one_thing_that_happens_costs_few_writes(workload, chance):
    world = World(workload)
    for _ in range(4):
        world.settle()
        hands.run_all(world)
    calm(world)
    before = len(world.api.history)
    Meddler(world, chance).meddle(*GENTLE, *SCALING)
    sent = 0
    for _ in range(6):
        plan = world.plan()
        sent += len(plan.intents)
        world.carry_out(plan)
    changed = {deed.key for deed in world.api.history[before:]}
    assert sent <= 2 * len(changed) + 2
