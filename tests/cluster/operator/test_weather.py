"""Stories in bad weather: they come to the same pictures by the same creates and deletes.

A sample runs always; GROVE_CAMPAIGN=1 tells every story in every weather with many seeds.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from grove.kube.faults import Rates
from grove.kube.resource import PODS, SERVICES
from tests.cluster.operator.harness import World, operating, succession
from tests.cluster.operator.recorder import Recorder
from tests.cluster.operator.seen import CLIQUES, GANGS, GROUPS, SETS
from tests.cluster.operator.stories import STORIES, Telling, measure, retell

CAMPAIGN = bool(os.environ.get("GROVE_CAMPAIGN"))
SEEDS = range(8) if CAMPAIGN else range(1)

LAG = Rates(delay=0.5, reorder=0.3, duplicate=0.2, longest_delay=0.3)
WEATHER = {
    "lag": LAG,
    "lost replies": Rates(lose=0.3),
    "refusals": Rates(conflict=0.08, throttle=0.08, error=0.08),
    "torn watches": Rates(drop=0.03, cut=0.05),
    "everything": Rates(
        conflict=0.05,
        throttle=0.05,
        error=0.05,
        lose=0.1,
        delay=0.2,
        drop=0.01,
        cut=0.02,
        duplicate=0.1,
        reorder=0.1,
        longest_delay=0.1,
    ),
}
SAMPLE = {("scaling", weather) for weather in WEATHER} | {
    ("wear", "everything"),
    ("wear", "lost replies"),
    ("renewal", "everything"),
    ("renewal", "lag"),
}
KINDS = (SETS, GROUPS, CLIQUES, GANGS, PODS, SERVICES)


@pytest.fixture
async def telling(world: World, story: str) -> Telling:
    return await measure(world.client, world.config, story)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("story", "weather"),
    [(story, weather) for story in STORIES for weather in WEATHER if CAMPAIGN or (story, weather) in SAMPLE],
)
async def test_in_any_weather_the_story_ends_the_same_by_the_same_deeds(
    world: World, telling: Telling, story: str, weather: str, seed: int
) -> None:
    """In the story of wear somebody deletes a clique: whose end is seen after that of its pods makes one more
    pod, which the garbage collector takes away. So its deeds are compared up to there."""
    async with operating(world, seed=seed, rates=WEATHER[weather]) as operator:
        await retell(world, story, telling, operator.recorder, to_the_end=story != "wear")
    assert operator.faults.met, "the weather was bad"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("story", STORIES if CAMPAIGN else ["scaling"])
async def test_kinds_that_stand_still_for_a_while_cost_nothing(
    world: World, telling: Telling, story: str, seed: int
) -> None:
    """Each step is acted on with one kind of object as it was before, until nothing more can be done."""
    chance = random.Random(seed)
    async with operating(world) as operator:
        frozen = ""

        async def freeze() -> None:
            nonlocal frozen
            frozen = chance.choice(KINDS).label
            operator.faults.freeze(frozen)

        async def thaw() -> None:
            await operator.recorder.silence(0.5)
            operator.faults.thaw(frozen)

        await retell(world, story, telling, operator.recorder, before=freeze, after=thaw)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("story", STORIES)
async def test_operators_that_die_after_any_write_leave_what_the_next_one_finishes(
    world: World, telling: Telling, story: str, seed: int
) -> None:
    """Deeds are not compared: what a dying operator had under way may be done and is heard by nobody."""
    chance = random.Random(seed)

    def lives() -> Iterator[int]:
        while True:
            yield chance.randint(1, 40)

    async with succession(world, lives()):
        await retell(world, story, telling)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("story", STORIES)
async def test_two_that_both_believe_to_lead_do_no_harm(
    world: World, telling: Telling, story: str, seed: int
) -> None:
    """One of them sees everything late, and neither knows of the other. Until a parent goes, no pod is made
    twice. Who learns late that a parent went or a count shrank may make parts anew, without a pod, that go
    again; and may delete a pod that is on its way out already."""
    both = Recorder()
    async with (
        operating(world, recorder=both),
        operating(world, recorder=both, seed=seed, rates=LAG),
    ):
        await retell(world, story, telling, both, counted="create pods", to_the_end=False)
