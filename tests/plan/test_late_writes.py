"""Writes of a former leader land after others have written: conditional writes may take up to 30 s.

Whatever lands late was refused by its precondition, is what the new leader wants as well, or is seen by it
and set right: no pod runs that no gang has ever named, and all ends as if nothing had landed.
"""

from __future__ import annotations

from hypothesis import given

from grove.kube.writer import is_conditional
from tests.plan.invariants import alive, check_history, check_settled, outline
from tests.plan.meddling import GENTLE, ROUGH, SCALING, Meddler, workloads
from tests.plan.test_properties import a_life, calm, chances, quick
from tests.plan.test_scaling import running
from tests.plan.world import Run, World

ALL = (*GENTLE, *SCALING, *ROUGH)


@quick
@given(workload=workloads(), chance=chances)
def test_conditional_writes_that_land_late_change_nothing_in_the_end(workload, chance):
    world = a_life(workload, chance, *ALL)
    former = Run(world, world.plan(), chance)
    for _ in range(chance.randrange(4)):
        former.go_on()
    in_flight = former.in_flight()
    world.restart_operator()
    meddler = Meddler(world, chance)
    for _ in range(chance.randrange(8)):
        if chance.random() < 0.5:
            world.step()
        else:
            meddler.meddle(*ALL)
    without = world.copy()
    for step in in_flight:
        if is_conditional(step.intent):
            former.land(step)
            if chance.random() < 0.5:
                world.step()
    calm(world)
    calm(without)
    check_settled(world)
    assert outline(world) == outline(without)
    check_history(world, zombies=True)


def pods_in_flight(world: World) -> tuple[Run, list]:
    """A run of the operator up to its pods, which it has sent and has no answer to."""
    run = Run(world, world.plan())
    while True:
        ready = run.in_flight()
        if ready and all(step.intent.target.kind == "Pod" for step in ready):
            return run, ready
        for step in ready:
            run.land(step)


def test_a_pod_that_lands_after_its_clique_was_scaled_in_is_deleted():
    world = running("a:1")
    world.scale("PodClique", "wl-0-a", 3)
    former, pods = pods_in_flight(world)
    assert len(pods) == 2
    world.scale("PodClique", "wl-0-a", 1)
    world.restart_operator()
    world.settle()
    for step in pods:
        former.land(step)
    assert len(alive(world)) == 3
    world.settle()
    assert len(alive(world)) == 1


def test_a_pod_that_lands_after_its_successor_was_named_is_deleted():
    """The new leader has made the same pod, and seen it die: the name is taken, or named no more."""
    world = running("a:1")
    world.scale("PodClique", "wl-0-a", 2)
    former, (late,) = pods_in_flight(world)
    world.restart_operator()
    world.settle()
    before = {pod.metadata.name for pod in alive(world)}
    former.land(late)
    world.settle()
    assert {pod.metadata.name for pod in alive(world)} == before
    assert len(before) == 2
