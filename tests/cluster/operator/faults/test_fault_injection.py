"""Every scenario, in fair weather and in bad: the same rests, by the same creates and deletes.

In an ordinary run each scenario is told in fair weather and in one other, chosen by GROVE_SEED; with
GROVE_CAMPAIGN=1 in every weather, with as many seeds as it says.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Awaitable, Callable, Iterator

import pytest

from grove.kube.client.resource import PODS, RESOURCE_CLAIMS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, SERVICES
from grove.kube.testing.faults import FaultRates
from tests.chart import Account
from tests.cluster.operator.scenarios import SCENARIOS
from tests.cluster.operator.support.harness import World, operating, successive_operators
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.scenario_runs import (
    FrozenWatchRun,
    RepeatedRun,
    Scenario,
    ScenarioRecord,
    options,
    repeat_scenario,
    run_baseline,
)

CAMPAIGN = int(os.environ.get("GROVE_CAMPAIGN") or 0)
SEED = int(os.environ.get("GROVE_SEED") or 0)

LAG = FaultRates(delay=0.5, reorder=0.3, duplicate=0.2, longest_delay=0.3)
RATES = {
    "lag": LAG,
    "lost replies": FaultRates(lose=0.3),
    "refusals": FaultRates(conflict=0.08, throttle=0.08, error=0.08),
    "torn watches": FaultRates(drop=0.03, cut=0.05),
    "everything": FaultRates(
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
GRANTS = (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)
KINDS = [kind.label for kind in (SETS, GROUPS, CLIQUES, GANGS, PODS, SERVICES, RESOURCE_CLAIMS, *GRANTS)]
Weather = Callable[[World, Scenario, ScenarioRecord, int], Awaitable[None]]


def disturbed(rates: FaultRates) -> Weather:
    """Events and writes meet faults by chance."""

    async def tell(world: World, scenario: Scenario, telling: ScenarioRecord, seed: int) -> None:
        async with operating(world, seed=seed, rates=rates, **options(scenario)) as operator:
            await repeat_scenario(world, scenario, RepeatedRun(world, telling, operator.recorder))
        assert operator.faults.fault_counts, "the weather was bad"

    return tell


async def standstill(world: World, scenario: Scenario, telling: ScenarioRecord, seed: int) -> None:
    """What happens is acted on with one kind of object as it was before, until nothing more can be done."""
    async with operating(world, **options(scenario)) as operator:
        await repeat_scenario(world, scenario, FrozenWatchRun(world, telling, operator, seed, KINDS))


async def short_lives(world: World, scenario: Scenario, telling: ScenarioRecord, seed: int) -> None:
    """Operators die after any write, and the next one finishes. Deeds are not compared: what a dying one had
    under way may be done and is heard by nobody."""
    chance = random.Random(seed)

    def lives() -> Iterator[int]:
        while True:
            yield chance.randint(1, 40)

    async with successive_operators(world, lives(), **options(scenario)):
        await repeat_scenario(world, scenario, RepeatedRun(world, telling))


async def two_leaders(world: World, scenario: Scenario, telling: ScenarioRecord, seed: int) -> None:
    """Both believe to lead and neither knows of the other; one of them sees everything late. Until a parent
    goes, nothing is made twice; a pod that is on its way out already may be deleted again."""
    both = Recorder(world.namespace)
    more = options(scenario)
    async with (
        operating(world, recorder=both, **more),
        operating(world, recorder=both, seed=seed, rates=LAG, **more),
    ):
        observer = RepeatedRun(world, telling, both, counted="create", to_the_end=False)
        await repeat_scenario(world, scenario, observer)


WEATHER: dict[str, Weather] = {
    **{name: disturbed(rates) for name, rates in RATES.items()},
    "standstill": standstill,
    "short lives": short_lives,
    "two leaders": two_leaders,
}


def forecast() -> Iterator[tuple[str, str, int]]:
    """Which scenario is told in which weather, with which seed. Every weather comes in every run."""
    if CAMPAIGN:
        yield from (
            (name, weather, SEED + seed)
            for seed in range(CAMPAIGN)
            for name in SCENARIOS
            for weather in WEATHER
        )
        return
    chance = random.Random(SEED)
    weathers = [weather for _ in range(math.ceil(len(SCENARIOS) / len(WEATHER))) for weather in WEATHER]
    chance.shuffle(weathers)
    yield from ((name, weather, SEED) for name, weather in zip(SCENARIOS, weathers, strict=False))


pytestmark = pytest.mark.usefixtures("collector")


@pytest.fixture
async def world(world: World, name: str, scheduler_crds: None, aware_account: Account) -> World:
    """The operator of a scenario with another scheduler has the rights to its kinds."""
    if options(SCENARIOS[name]):
        world.config = aware_account.config
    return world


async def in_fair_weather(world: World, name: str) -> ScenarioRecord:
    return await run_baseline(world.client, world.config, name, SCENARIOS[name])


@pytest.mark.parametrize("name", SCENARIOS)
async def test_in_fair_weather(world: World, name: str) -> None:
    assert (await in_fair_weather(world, name)).snapshots


@pytest.mark.parametrize(("name", "weather", "seed"), list(forecast()))
async def test_in_bad_weather(world: World, name: str, weather: str, seed: int) -> None:
    telling = await in_fair_weather(world, name)
    await WEATHER[weather](world, SCENARIOS[name], telling, seed)
