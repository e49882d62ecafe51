"""Runs every scenario without faults and with faults: the same state at every checkpoint, reached by the same
creates and deletes.

In an ordinary run each scenario runs without faults and with one kind of fault, chosen by GROVE_SEED; with
GROVE_CAMPAIGN=n it runs with every kind of fault and n seeds.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Awaitable, Callable, Iterator

import pytest

from grove.kube.client.resource import PODS, RESOURCE_CLAIMS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, SERVICES
from grove.kube.testing.faults import FaultRates
from grove.schedulers.registry import SchedulerBackends
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

LATE_EVENTS = FaultRates(delay=0.5, reorder=0.3, duplicate=0.2, longest_delay=0.3)
RATES = {
    "late events": LATE_EVENTS,
    "lost replies": FaultRates(lose=0.3),
    "refused writes": FaultRates(conflict=0.08, throttle=0.08, error=0.08),
    "broken watches": FaultRates(drop=0.03, cut=0.05),
    "all faults": FaultRates(
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
RBAC = (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)
KINDS = [kind.label for kind in (SETS, GROUPS, CLIQUES, GANGS, PODS, SERVICES, RESOURCE_CLAIMS, *RBAC)]
_FEW = 10.0
"""Expected faults below which a short scenario may meet none."""
FaultyRun = Callable[[World, Scenario, ScenarioRecord, int], Awaitable[None]]


def random_faults(rates: FaultRates) -> FaultyRun:
    """Watch events and writes meet faults at these rates."""

    async def run(world: World, scenario: Scenario, baseline: ScenarioRecord, seed: int) -> None:
        async with operating(world, seed=seed, rates=rates, **options(scenario)) as operator:
            await repeat_scenario(world, scenario, RepeatedRun(world, baseline, operator.recorder))
        few = operator.faults.expected_faults < _FEW
        assert operator.faults.fault_counts or few, "faults were injected"

    return run


async def frozen_watch(world: World, scenario: Scenario, baseline: ScenarioRecord, seed: int) -> None:
    """The operator acts on changes with an outdated cache of one kind, until it has nothing left to do."""
    async with operating(world, **options(scenario)) as operator:
        await repeat_scenario(world, scenario, FrozenWatchRun(world, baseline, operator, seed, KINDS))


async def restarts(world: World, scenario: Scenario, baseline: ScenarioRecord, seed: int) -> None:
    """Operators stop after a random number of writes, and the next one continues. Creates and deletes are not
    compared: a write that is in flight when its operator stops may take effect without being recorded."""
    rng = random.Random(seed)

    def write_limits() -> Iterator[int]:
        while True:
            yield rng.randint(1, 40)

    async with successive_operators(world, write_limits(), **options(scenario)):
        await repeat_scenario(world, scenario, RepeatedRun(world, baseline))


async def two_leaders(world: World, scenario: Scenario, baseline: ScenarioRecord, seed: int) -> None:
    """Two operators act as leaders without knowing of each other, and one sees all events late. Until the
    scenario stops comparing deletes, no object is created twice; a terminating pod may be deleted again."""
    both = Recorder(world.namespace)
    more = options(scenario)
    async with (
        operating(world, recorder=both, **more),
        operating(world, recorder=both, seed=seed, rates=LATE_EVENTS, **more),
    ):
        observer = RepeatedRun(world, baseline, both, counted="create", to_the_end=False)
        await repeat_scenario(world, scenario, observer)


FAULTS: dict[str, FaultyRun] = {
    **{name: random_faults(rates) for name, rates in RATES.items()},
    "frozen watch": frozen_watch,
    "restarts": restarts,
    "two leaders": two_leaders,
}


def faulty_runs() -> Iterator[tuple[str, str, int]]:
    """Which scenario runs with which fault and seed. Every kind of fault is used in every test run."""
    if CAMPAIGN:
        yield from (
            (name, fault, SEED + seed) for seed in range(CAMPAIGN) for name in SCENARIOS for fault in FAULTS
        )
        return
    faults = [fault for _ in range(math.ceil(len(SCENARIOS) / len(FAULTS))) for fault in FAULTS]
    random.Random(SEED).shuffle(faults)
    yield from ((name, fault, SEED) for name, fault in zip(SCENARIOS, faults, strict=False))


pytestmark = pytest.mark.usefixtures("garbage_collector")


@pytest.fixture
async def world(
    world: World, name: str, scheduler_crds: None, aware_account: Account, placing_account: Account
) -> World:
    """The operator of a scenario with another scheduler or a fabric has the rights to its kinds."""
    if chosen := options(SCENARIOS[name]):
        schedulers: SchedulerBackends | None = chosen.get("backends")
        places = schedulers is not None and schedulers.placement is not None
        world.config = (placing_account if places else aware_account).config
    return world


async def baseline_of(world: World, name: str) -> ScenarioRecord:
    return await run_baseline(world.client, world.config, name, SCENARIOS[name])


@pytest.mark.parametrize("name", SCENARIOS)
async def test_scenario_without_faults(world: World, name: str) -> None:
    assert (await baseline_of(world, name)).snapshots


@pytest.mark.parametrize(("name", "fault", "seed"), list(faulty_runs()))
async def test_scenario_with_faults(world: World, name: str, fault: str, seed: int) -> None:
    baseline = await baseline_of(world, name)
    await FAULTS[fault](world, SCENARIOS[name], baseline, seed)
