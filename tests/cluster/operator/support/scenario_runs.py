"""Runs scenarios: first without faults, which gives the baseline, then with faults, compared with it."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from grove.kube.auth.config import Config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES
from grove.kube.errors import Conflict, NotFound
from tests.cluster.operator.support.harness import Operator, World, operating, watching
from tests.cluster.operator.support.recorder import Recorder
from tests.cluster.operator.support.state_snapshot import StateSnapshot, take_snapshot
from tests.namespaces import make_namespace

Scenario = Callable[[World], Awaitable[None]]
Condition = Callable[[], object]


class ScenarioRecord(NamedTuple):
    """The baseline of a scenario: what was seen in the run without faults."""

    snapshots: dict[str, StateSnapshot | None]
    """The state at each checkpoint; None where it differs from run to run."""
    creates_and_deletes: Counter[str]
    """Creates and deletes until the scenario stops comparing deletes."""
    all_creates_and_deletes: Counter[str]


class BaselineRun:
    """The run without faults: takes a snapshot at each checkpoint."""

    def __init__(self, world: World, recorder: Recorder) -> None:
        self._world, self._recorder = world, recorder
        self._snapshots: dict[str, StateSnapshot | None] = {}
        self._compared_writes: Counter[str] | None = None

    async def wait(self) -> None: ...

    async def stop_comparing_deletes(self) -> None:
        if self._compared_writes is None:
            self._compared_writes = self._recorder.creates_and_deletes()

    async def checkpoint(self, name: str, when: Condition, compared: bool) -> None:
        assert name not in self._snapshots, f"two checkpoints are called {name!r}"
        world = self._world
        await world.until(when, name)
        await self._recorder.until_quiet()
        await world.until(when, f"{name}, and still so after all writes")
        self._snapshots[name] = take_snapshot(world) if compared else None

    def record(self) -> ScenarioRecord:
        all_creates_and_deletes = self._recorder.creates_and_deletes()
        return ScenarioRecord(
            self._snapshots,
            all_creates_and_deletes if self._compared_writes is None else self._compared_writes,
            all_creates_and_deletes,
        )


class RepeatedRun:
    """A run that is compared with the baseline: every checkpoint has the baseline's snapshot. With a recorder
    the creates and deletes are compared too (those that start with `counted`), until the scenario stops
    comparing deletes, and then the creates of the whole scenario if `to_the_end`."""

    def __init__(
        self,
        world: World,
        baseline: ScenarioRecord,
        recorder: Recorder | None = None,
        *,
        counted: str = "",
        to_the_end: bool = True,
    ) -> None:
        self._world, self._baseline, self._recorder = world, baseline, recorder
        self._counted, self._to_the_end = counted, to_the_end
        self._compared = False

    async def wait(self) -> None: ...

    async def stop_comparing_deletes(self) -> None:
        if self._recorder is not None and not self._compared:
            await self._recorder.until_quiet()
            compare(self._recorder, self._baseline.creates_and_deletes, self._counted)
        self._compared = True

    async def checkpoint(self, name: str, when: Condition, compared: bool) -> None:
        expected = self._baseline.snapshots[name]
        try:
            if expected is None:
                await self._world.until(when, name)
            else:
                await self._world.until_snapshot(expected)
        except AssertionError as problem:
            raise AssertionError(f"{name}: {problem}") from None

    async def end(self) -> None:
        if self._recorder is None:
            return
        if not self._compared:
            await self.stop_comparing_deletes()
        if self._to_the_end:
            compare(self._recorder, self._baseline.all_creates_and_deletes, "create")


class FrozenWatchRun(RepeatedRun):
    """A run in which the operator gets no watch events of one kind from each checkpoint to the next wait."""

    def __init__(
        self, world: World, baseline: ScenarioRecord, operator: Operator, seed: int, kinds: list[str]
    ) -> None:
        super().__init__(world, baseline, operator.recorder)
        self._operator, self._kinds, self._random = operator, kinds, random.Random(seed)
        self._frozen = ""

    async def wait(self) -> None:
        if self._frozen:
            await self._operator.recorder.until_quiet(0.5)
            self._operator.faults.resume_watch(self._frozen)
            self._frozen = ""

    async def checkpoint(self, name: str, when: Condition, compared: bool) -> None:
        await super().checkpoint(name, when, compared)
        self._frozen = self._random.choice(self._kinds)
        self._operator.faults.pause_watch(self._frozen)


def compare(recorder: Recorder, expected: Counter[str], counted: str = "") -> None:
    """Assert the same creates, and no delete that the baseline does not have. Fewer deletes are fine: the
    garbage collector may be faster, and the snapshots show that no object is left."""
    creates_and_deletes = Counter(
        {write: n for write, n in recorder.creates_and_deletes().items() if write.startswith(counted)}
    )
    expected = Counter({write: n for write, n in expected.items() if write.startswith(counted)})
    too_many, too_few = dict(creates_and_deletes - expected), dict(expected - creates_and_deletes)
    missing = {write: count for write, count in too_few.items() if write.startswith("create")}
    writes = "\n".join(map(str, recorder.writes()))
    assert not too_many | missing, f"too many: {too_many}, missing: {missing}\n{writes}"


def options(scenario: Scenario) -> dict[str, Any]:
    """The arguments with which the operator of a scenario is started, besides the defaults."""
    found: dict[str, Any] = getattr(scenario, "options", {})
    return found


_baselines: dict[str, ScenarioRecord] = {}
_numbers = itertools.count(1)


async def run_baseline(client: Client, config: Config, name: str, scenario: Scenario) -> ScenarioRecord:
    """The scenario without faults: run once a session, in a namespace of its own."""
    if name not in _baselines:
        namespace = f"baseline-{next(_numbers)}"
        await make_namespace(client, namespace)
        async with (
            watching(client, config, namespace) as world,
            operating(world, **options(scenario)) as operator,
        ):
            observer = world.observer = BaselineRun(world, operator.recorder)
            await scenario(world)
            _baselines[name] = observer.record()
        with suppress(NotFound, Conflict):  # the scenario may have deleted it
            await client.delete(NAMESPACES, namespace, as_type=Object)
    return _baselines[name]


async def repeat_scenario(world: World, scenario: Scenario, observer: RepeatedRun) -> None:
    """Run the scenario again, under this observer."""
    world.observer = observer
    await scenario(world)
    await observer.end()
