"""Statuses are published also where writes have failed. What they say must then be what is, not what would
have been: a decision that was told and never written down would be forgotten, or taken twice."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from hypothesis import given

from grove.api.naming import annotations as keys
from grove.api.naming import labels
from grove.plan.model import Plan
from grove.plan.podcliqueset import ReplicaReport
from tests.plan.convergence.test_properties import chances
from tests.plan.rollout.test_properties import (
    CHANGES,
    FAULTS,
    Changer,
    lives,
    random_history,
    settle_all,
    several,
)
from tests.plan.simulator import actors
from tests.plan.simulator.api_server import decode
from tests.plan.simulator.invariants import outline
from tests.plan.simulator.random_changes import GENTLE, SCALING
from tests.plan.simulator.simulator import OPERATOR, Run, Simulator

FATE = ("run all", "run all", "finish", "finish", "wait", "crash", "refuse", "new template", *SCALING)
"""What happens to both of two worlds alike: nothing that depends on names of pods."""


def in_vain(sim: Simulator, chance: Random, *, told: bool) -> None:
    """A pass over each replica and the set, of whose writes only the first few are done; `told` or not."""
    replicas = sim.api.get("PodCliqueSet", "wl")["spec"]["replicas"]
    for index in range(replicas):
        plan = sim.plan(index)
        _begin(sim, plan, chance)
        if plan.summary is not None:
            generation = sim.api.get("PodCliqueSet", "wl")["metadata"]["generation"]
            sim.reports[index] = ReplicaReport(generation, plan.summary)
        if told:
            sim.publish(plan, all_done=False)
    plan = sim.plan_set()
    if told:
        sim.publish(plan, all_done=False)


def _begin(sim: Simulator, plan: Plan, chance: Random) -> None:
    run = Run(sim, plan)
    for _ in range(chance.choice((0, chance.randrange(len(plan.intents) + 1)))):
        run.go_on()


def lives_on(sim: Simulator, chance: Random, length: int) -> None:
    """Both see at the same moment what there is to see; from then on their fate is the same."""
    changer = Changer(sim, chance)
    sim.tend()
    for _ in range(length):
        sim.tend()
        sim.now += 5.0
        changer.apply_random(*FATE)
    settle_all(sim)


def story(sim: Simulator, since: int) -> dict[str, Any]:
    """What the operator did and where it led, whatever the names that chance gave the pods."""
    writes: Counter[str] = Counter()
    terminations: list[str] = []
    for write in sim.api.history[since:]:
        kind, name = write.key
        if write.by != OPERATOR:
            continue
        body = decode(write.after or write.before or b"")
        if kind == "Pod" and write.verb in ("create", "delete"):
            writes[f"{write.verb} {body['metadata']['labels'][labels.CLIQUE]}"] += 1
        if kind == "PodGang" and write.before and write.after:
            noted = [_noted(version) for version in (write.before, write.after)]
            terminations += [f"{name}: {noted[1]}"] if noted[0] != noted[1] else []
    return {"writes": writes, "terminations": terminations, "outline": outline(sim)}


def _noted(gang: bytes) -> str:
    return decode(gang)["metadata"].get("annotations", {}).get(keys.TERMINATIONS, "")


@lives
@given(body=several(), chance=chances)
def test_status_of_failed_plan_changes_nothing(body, chance):
    body["spec"]["template"]["terminationDelay"] = "20s"
    sim = random_history(body, chance, *FAULTS, *GENTLE, *SCALING, *CHANGES)
    actors.finish_terminating(sim)
    since, seed, length = len(sim.api.history), chance.randrange(2**32), chance.randrange(8)
    twins = sim, sim.copy()
    for twin, told in zip(twins, (False, True), strict=True):
        in_vain(twin, Random(seed), told=told)
        lives_on(twin, Random(seed), length)
    silent, talkative = (story(twin, since) for twin in twins)
    assert talkative == silent
