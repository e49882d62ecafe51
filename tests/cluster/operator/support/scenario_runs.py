"""How scenarios are told: first in fair weather, which is the measure, then in any other."""

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
    """A scenario as it went in fair weather."""

    snapshots: dict[str, StateSnapshot | None]
    """What each rest looks like; None where it may look like this or that."""
    creates_and_deletes: Counter[str]
    """Creates and deletes before a parent goes."""
    all_creates_and_deletes: Counter[str]


class BaselineRun:
    """Tells a scenario for the first time, and takes its pictures."""

    def __init__(self, world: World, recorder: Recorder) -> None:
        self._world, self._recorder = world, recorder
        self._pictures: dict[str, StateSnapshot | None] = {}
        self._deeds: Counter[str] | None = None

    async def wait(self) -> None: ...

    async def parent_goes(self) -> None:
        if self._deeds is None:
            self._deeds = self._recorder.creates_and_deletes()

    async def rest(self, name: str, when: Condition, compared: bool) -> None:
        assert name not in self._pictures, f"two rests are called {name!r}"
        world = self._world
        await world.until(when, name)
        await self._recorder.silence()
        await world.until(when, f"{name}, and so it stays")
        self._pictures[name] = take_snapshot(world) if compared else None

    def record(self) -> ScenarioRecord:
        all_creates_and_deletes = self._recorder.creates_and_deletes()
        return ScenarioRecord(
            self._pictures,
            all_creates_and_deletes if self._deeds is None else self._deeds,
            all_creates_and_deletes,
        )


class RepeatedRun:
    """Tells it again: every rest comes to the picture of the first time; and if there is a recorder, by the
    same deeds, all of them or those that begin with what is `counted`, until a parent goes or `to_the_end`.
    """

    def __init__(
        self,
        world: World,
        telling: ScenarioRecord,
        recorder: Recorder | None = None,
        *,
        counted: str = "",
        to_the_end: bool = True,
    ) -> None:
        self._world, self._telling, self._recorder = world, telling, recorder
        self._counted, self._to_the_end = counted, to_the_end
        self._compared = False

    async def wait(self) -> None: ...

    async def parent_goes(self) -> None:
        if self._recorder is not None and not self._compared:
            await self._recorder.silence()
            compare(self._recorder, self._telling.creates_and_deletes, self._counted)
        self._compared = True

    async def rest(self, name: str, when: Condition, compared: bool) -> None:
        expected = self._telling.snapshots[name]
        try:
            if expected is None:
                await self._world.until(when, name)
            else:
                await self._world.until_like(expected)
        except AssertionError as problem:
            raise AssertionError(f"{name}: {problem}") from None

    async def end(self) -> None:
        if self._recorder is None:
            return
        if not self._compared:
            await self.parent_goes()
        if self._to_the_end:
            compare(self._recorder, self._telling.all_creates_and_deletes, "create")


class FrozenWatchRun(RepeatedRun):
    """From each rest to the next thing that is waited for, one kind of object stands still."""

    def __init__(
        self, world: World, telling: ScenarioRecord, operator: Operator, seed: int, kinds: list[str]
    ) -> None:
        super().__init__(world, telling, operator.recorder)
        self._operator, self._kinds, self._chance = operator, kinds, random.Random(seed)
        self._frozen = ""

    async def wait(self) -> None:
        if self._frozen:
            await self._operator.recorder.silence(0.5)
            self._operator.faults.resume_watch(self._frozen)
            self._frozen = ""

    async def rest(self, name: str, when: Condition, compared: bool) -> None:
        await super().rest(name, when, compared)
        self._frozen = self._chance.choice(self._kinds)
        self._operator.faults.pause_watch(self._frozen)


def compare(recorder: Recorder, expected: Counter[str], counted: str = "") -> None:
    """The same creates, and no delete that fair weather does not see. Fewer deletes are fine: the garbage
    collector may be faster, and the pictures show that nothing was left."""
    creates_and_deletes = Counter(
        {deed: n for deed, n in recorder.creates_and_deletes().items() if deed.startswith(counted)}
    )
    expected = Counter({deed: n for deed, n in expected.items() if deed.startswith(counted)})
    too_many, too_few = dict(creates_and_deletes - expected), dict(expected - creates_and_deletes)
    missing = {deed: count for deed, count in too_few.items() if deed.startswith("create")}
    told = "\n".join(map(str, recorder.writes()))
    assert not too_many | missing, f"too many: {too_many}, missing: {missing}\n{told}"


def options(scenario: Scenario) -> dict[str, Any]:
    """What the operator of a scenario is started with, if it is something special."""
    found: dict[str, Any] = getattr(scenario, "options", {})
    return found


_baselines: dict[str, ScenarioRecord] = {}
_numbers = itertools.count(1)


async def run_baseline(client: Client, config: Config, name: str, scenario: Scenario) -> ScenarioRecord:
    """The scenario in fair weather: told once in a run, in a namespace of its own."""
    if name not in _baselines:
        namespace = f"measure-{next(_numbers)}"
        await make_namespace(client, namespace)
        async with (
            watching(client, config, namespace) as world,
            operating(world, **options(scenario)) as operator,
        ):
            observer = world.observer = BaselineRun(world, operator.recorder)
            await scenario(world)
            _baselines[name] = observer.record()
        with suppress(NotFound, Conflict):  # it may be part of the scenario that it goes
            await client.delete(NAMESPACES, namespace, as_type=Object)
    return _baselines[name]


async def repeat_scenario(world: World, scenario: Scenario, observer: RepeatedRun) -> None:
    """The scenario once more, as the teller tells it."""
    world.observer = observer
    await scenario(world)
    await observer.end()
