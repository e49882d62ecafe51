"""Writes of a former leader that arrive after the new leader has written: conditional writes may take up to
30 s.

A late write is refused by its precondition, is what the new leader wants as well, or is observed and
corrected by it: no pod runs that no gang has ever named, and the result is the same as without the late
writes.
"""

from __future__ import annotations

from hypothesis import given

from grove.kube.executor.writer import is_conditional
from tests.plan.convergence.test_properties import calm, chances, quick, random_history
from tests.plan.simulator.invariants import alive, check_history, check_settled, outline
from tests.plan.simulator.random_changes import GENTLE, ROUGH, SCALING, RandomChanges, workloads
from tests.plan.simulator.simulator import Run, Simulator
from tests.plan.test_scaling import running

ALL = (*GENTLE, *SCALING, *ROUGH)


@quick
@given(workload=workloads(), chance=chances)
def test_late_conditional_writes_do_not_change_the_result(workload, chance):
    sim = random_history(workload, chance, *ALL)
    former = Run(sim, sim.plan(), chance)
    for _ in range(chance.randrange(4)):
        former.go_on()
    in_flight = former.in_flight()
    sim.restart_operator()
    changes = RandomChanges(sim, chance)
    for _ in range(chance.randrange(8)):
        if chance.random() < 0.5:
            sim.step()
        else:
            changes.apply_random(*ALL)
    without = sim.copy()
    for step in in_flight:
        if is_conditional(step.intent):
            former.land(step)
            if chance.random() < 0.5:
                sim.step()
    calm(sim)
    calm(without)
    check_settled(sim)
    assert outline(sim) == outline(without)
    check_history(sim, two_leaders=True)


def pods_in_flight(sim: Simulator) -> tuple[Run, list]:
    """An operator that has sent its pod creates and has no reply yet."""
    run = Run(sim, sim.plan())
    while True:
        ready = run.in_flight()
        if ready and all(step.intent.target.kind == "Pod" for step in ready):
            return run, ready
        for step in ready:
            run.land(step)


def test_late_pod_create_after_scale_in_is_deleted():
    sim = running("a:1")
    sim.scale("PodClique", "wl-0-a", 3)
    former, pods = pods_in_flight(sim)
    assert len(pods) == 2
    sim.scale("PodClique", "wl-0-a", 1)
    sim.restart_operator()
    sim.settle()
    for step in pods:
        former.land(step)
    assert len(alive(sim)) == 3
    sim.settle()
    assert len(alive(sim)) == 1


def test_late_pod_create_after_successor_named_is_deleted():
    """The new leader has created the same pod: the late create finds the name in use."""
    sim = running("a:1")
    sim.scale("PodClique", "wl-0-a", 2)
    former, (late,) = pods_in_flight(sim)
    sim.restart_operator()
    sim.settle()
    before = {pod.metadata.name for pod in alive(sim)}
    former.land(late)
    sim.settle()
    assert {pod.metadata.name for pod in alive(sim)} == before
    assert len(before) == 2
