"""Statuses are published also where writes have failed. What they say must then be what is, not what would
have been: a decision that was told and never written down would be forgotten, or taken twice."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from hypothesis import given

from grove.api import annotations as keys
from grove.api import labels
from grove.plan.model import Plan
from grove.plan.whole import Report
from tests.plan import hands
from tests.plan.api_server import decode
from tests.plan.invariants import outline
from tests.plan.meddling import GENTLE, SCALING
from tests.plan.test_properties import chances
from tests.plan.test_update_properties import (
    CHANGES,
    TROUBLE,
    Changer,
    a_life,
    come_to_rest,
    lives,
    several,
)
from tests.plan.world import OPERATOR, Run, World

FATE = ("run all", "run all", "finish", "finish", "wait", "crash", "refuse", "new template", *SCALING)
"""What happens to both of two worlds alike: nothing that depends on names of pods."""


def in_vain(world: World, chance: Random, *, told: bool) -> None:
    """A pass over each replica and the set, of whose writes only the first few are done; `told` or not."""
    replicas = world.api.get("PodCliqueSet", "wl")["spec"]["replicas"]
    for index in range(replicas):
        plan = world.plan(index)
        _begin(world, plan, chance)
        if plan.standing is not None:
            generation = world.api.get("PodCliqueSet", "wl")["metadata"]["generation"]
            world.reports[index] = Report(generation, plan.standing)
        if told:
            world.publish(plan, all_done=False)
    plan = world.plan_set()
    if told:
        world.publish(plan, all_done=False)


def _begin(world: World, plan: Plan, chance: Random) -> None:
    run = Run(world, plan)
    for _ in range(chance.choice((0, chance.randrange(len(plan.intents) + 1)))):
        run.go_on()


def lives_on(world: World, chance: Random, length: int) -> None:
    """Both see at the same moment what there is to see; from then on their fate is the same."""
    changer = Changer(world, chance)
    world.tend()
    for _ in range(length):
        world.tend()
        world.now += 5.0
        changer.meddle(*FATE)
    come_to_rest(world)


def story(world: World, since: int) -> dict[str, Any]:
    """What the operator did and where it led, whatever the names that chance gave the pods."""
    deeds: Counter[str] = Counter()
    terminations: list[str] = []
    for deed in world.api.history[since:]:
        kind, name = deed.key
        if deed.by != OPERATOR:
            continue
        body = decode(deed.after or deed.before or b"")
        if kind == "Pod" and deed.verb in ("create", "delete"):
            deeds[f"{deed.verb} {body['metadata']['labels'][labels.CLIQUE]}"] += 1
        if kind == "PodGang" and deed.before and deed.after:
            noted = [_noted(version) for version in (deed.before, deed.after)]
            terminations += [f"{name}: {noted[1]}"] if noted[0] != noted[1] else []
    return {"deeds": deeds, "terminations": terminations, "outline": outline(world)}


def _noted(gang: bytes) -> str:
    return decode(gang)["metadata"].get("annotations", {}).get(keys.TERMINATIONS, "")


@lives
@given(body=several(), chance=chances)
def test_what_was_told_of_a_plan_that_failed_changes_nothing(body, chance):
    body["spec"]["template"]["terminationDelay"] = "20s"
    world = a_life(body, chance, *TROUBLE, *GENTLE, *SCALING, *CHANGES)
    hands.finish_terminating(world)
    since, seed, length = len(world.api.history), chance.randrange(2**32), chance.randrange(8)
    twins = world, world.copy()
    for twin, told in zip(twins, (False, True), strict=True):
        in_vain(twin, Random(seed), told=told)
        lives_on(twin, Random(seed), length)
    silent, talkative = (story(twin, since) for twin in twins)
    assert talkative == silent
