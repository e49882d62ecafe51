"""Statuses are published even if writes have failed. They must then describe the existing state, not the
planned one: a decision that is published and not written would be lost, or taken twice.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from hypothesis import given

from grove.api.naming import annotations as keys
from grove.api.naming import labels
from grove.plan.model import Plan, ReplicaReport
from tests.plan.convergence.test_properties import chances
from tests.plan.rollout.test_properties import (
    CHANGES,
    FAULTS,
    Changer,
    random_history,
    settle_all,
    several,
    slow,
)
from tests.plan.simulator import actors
from tests.plan.simulator.api_server import decode
from tests.plan.simulator.invariants import outline
from tests.plan.simulator.random_changes import GENTLE, SCALING
from tests.plan.simulator.simulator import OPERATOR, Run, Simulator

COMMON_CHANGES = (
    "run all",
    "run all",
    "finish",
    "finish",
    "wait",
    "crash",
    "refuse",
    "new template",
    *SCALING,
)
"""Changes that apply to both copies alike: none depends on names of pods."""


def execute_in_part(sim: Simulator, chance: Random, *, published: bool) -> None:
    """Reconciles each replica and the set, with only the first few writes; statuses `published` or not."""
    replicas = sim.api.get("PodCliqueSet", "wl")["spec"]["replicas"]
    for index in range(replicas):
        plan = sim.plan(index)
        _execute_prefix(sim, plan, chance)
        if plan.report is not None:
            generation = sim.api.get("PodCliqueSet", "wl")["metadata"]["generation"]
            sim.reports[index] = ReplicaReport(generation, plan.report)
        if published:
            sim.publish(plan, all_done=False)
    plan = sim.plan_set()
    if published:
        sim.publish(plan, all_done=False)


def _execute_prefix(sim: Simulator, plan: Plan, chance: Random) -> None:
    run = Run(sim, plan)
    for _ in range(chance.choice((0, chance.randrange(len(plan.intents) + 1)))):
        run.go_on()


def run_changes(sim: Simulator, chance: Random, length: int) -> None:
    """From the same observations on, applies the same random changes to both copies."""
    changer = Changer(sim, chance)
    sim.reconcile_all()
    for _ in range(length):
        sim.reconcile_all()
        sim.now += 5.0
        changer.apply_random(*COMMON_CHANGES)
    settle_all(sim)


def operator_actions(sim: Simulator, since: int) -> dict[str, Any]:
    """The writes of the operator and the resulting state, without random pod names."""
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
            noted = [_terminations(version) for version in (write.before, write.after)]
            terminations += [f"{name}: {noted[1]}"] if noted[0] != noted[1] else []
    return {"writes": writes, "terminations": terminations, "outline": outline(sim)}


def _terminations(gang: bytes) -> str:
    return decode(gang)["metadata"].get("annotations", {}).get(keys.TERMINATIONS, "")


@slow
@given(body=several(), chance=chances)
def test_status_of_failed_plan_changes_nothing(body, chance):
    body["spec"]["template"]["terminationDelay"] = "20s"
    sim = random_history(body, chance, *FAULTS, *GENTLE, *SCALING, *CHANGES)
    actors.finish_terminating(sim)
    since, seed, length = len(sim.api.history), chance.randrange(2**32), chance.randrange(8)
    copies = sim, sim.copy()
    for copy, published in zip(copies, (False, True), strict=True):
        execute_in_part(copy, Random(seed), published=published)
        run_changes(copy, Random(seed), length)
    unpublished_actions, published_actions = (operator_actions(copy, since) for copy in copies)
    assert published_actions == unpublished_actions
