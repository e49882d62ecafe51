"""What holds for plans of any replica, whatever has happened to it before."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.plan.diff import status_patch
from grove.plan.model import Plan
from tests.plan import hands
from tests.plan.invariants import check_history, outline
from tests.plan.meddling import GENTLE, ROUGH, SCALING, Meddler, workloads
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


@quick
@given(workload=workloads(), chance=chances)
def test_planned_again_there_is_nothing_to_do(workload, chance):
    world = a_life(workload, chance, *GENTLE, *SCALING, *ROUGH)
    calm(world)
    plan = world.plan()
    assert writes(plan) == []
    assert [status_patch(draft.current, draft.desired) for draft in plan.drafts] == [{}] * len(plan.drafts)
    assert plan.wake_at is None
    check_history(world)
