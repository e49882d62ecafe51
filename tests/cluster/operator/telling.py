"""How scenarios are told: first in fair weather, which is the measure, then in any other."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from grove.kube.client import Client
from grove.kube.config import Config
from grove.kube.errors import Conflict, NotFound
from grove.kube.resource import NAMESPACES
from grove.kube.wire import Object
from tests.cluster.operator.harness import Operator, World, operating, watching
from tests.cluster.operator.picture import Picture, picture
from tests.cluster.operator.recorder import Recorder
from tests.namespaces import make_namespace

Scenario = Callable[[World], Awaitable[None]]
Condition = Callable[[], object]


class Telling(NamedTuple):
    """A scenario as it went in fair weather."""

    pictures: dict[str, Picture | None]
    """What each rest looks like; None where it may look like this or that."""
    deeds: Counter[str]
    """Creates and deletes before a parent goes."""
    all_deeds: Counter[str]


class Measuring:
    """Tells a scenario for the first time, and takes its pictures."""

    def __init__(self, world: World, recorder: Recorder) -> None:
        self._world, self._recorder = world, recorder
        self._pictures: dict[str, Picture | None] = {}
        self._deeds: Counter[str] | None = None

    async def wait(self) -> None: ...

    async def parent_goes(self) -> None:
        if self._deeds is None:
            self._deeds = self._recorder.deeds()

    async def rest(self, name: str, when: Condition, pictured: bool) -> None:
        assert name not in self._pictures, f"two rests are called {name!r}"
        world = self._world
        await world.until(when, name)
        await self._recorder.silence()
        await world.until(when, f"{name}, and so it stays")
        self._pictures[name] = picture(world) if pictured else None

    def told(self) -> Telling:
        all_deeds = self._recorder.deeds()
        return Telling(self._pictures, all_deeds if self._deeds is None else self._deeds, all_deeds)


class Retelling:
    """Tells it again: every rest comes to the picture of the first time; and if there is a recorder, by the
    same deeds, all of them or those that begin with what is `counted`, until a parent goes or `to_the_end`.
    """

    def __init__(
        self,
        world: World,
        telling: Telling,
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
            compare(self._recorder, self._telling.deeds, self._counted)
        self._compared = True

    async def rest(self, name: str, when: Condition, pictured: bool) -> None:
        expected = self._telling.pictures[name]
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
            compare(self._recorder, self._telling.all_deeds, "create")


class Freezing(Retelling):
    """From each rest to the next thing that is waited for, one kind of object stands still."""

    def __init__(
        self, world: World, telling: Telling, operator: Operator, seed: int, kinds: list[str]
    ) -> None:
        super().__init__(world, telling, operator.recorder)
        self._operator, self._kinds, self._chance = operator, kinds, random.Random(seed)
        self._frozen = ""

    async def wait(self) -> None:
        if self._frozen:
            await self._operator.recorder.silence(0.5)
            self._operator.faults.thaw(self._frozen)
            self._frozen = ""

    async def rest(self, name: str, when: Condition, pictured: bool) -> None:
        await super().rest(name, when, pictured)
        self._frozen = self._chance.choice(self._kinds)
        self._operator.faults.freeze(self._frozen)


def compare(recorder: Recorder, expected: Counter[str], counted: str = "") -> None:
    """The same creates, and no delete that fair weather does not see. Fewer deletes are fine: the garbage
    collector may be faster, and the pictures show that nothing was left."""
    deeds = Counter({deed: n for deed, n in recorder.deeds().items() if deed.startswith(counted)})
    expected = Counter({deed: n for deed, n in expected.items() if deed.startswith(counted)})
    too_many, too_few = dict(deeds - expected), dict(expected - deeds)
    missing = {deed: count for deed, count in too_few.items() if deed.startswith("create")}
    told = "\n".join(map(str, recorder.writes()))
    assert not too_many | missing, f"too many: {too_many}, missing: {missing}\n{told}"


def options(scenario: Scenario) -> dict[str, Any]:
    """What the operator of a scenario is started with, if it is something special."""
    found: dict[str, Any] = getattr(scenario, "options", {})
    return found


_told: dict[str, Telling] = {}
_numbers = itertools.count(1)


async def measure(client: Client, config: Config, name: str, scenario: Scenario) -> Telling:
    """The scenario in fair weather: told once in a run, in a namespace of its own."""
    if name not in _told:
        namespace = f"measure-{next(_numbers)}"
        await make_namespace(client, namespace)
        async with (
            watching(client, config, namespace) as world,
            operating(world, **options(scenario)) as operator,
        ):
            teller = world.teller = Measuring(world, operator.recorder)
            await scenario(world)
            _told[name] = teller.told()
        with suppress(NotFound, Conflict):  # it may be part of the scenario that it goes
            await client.delete(NAMESPACES, namespace, as_type=Object)
    return _told[name]


async def retell(world: World, scenario: Scenario, teller: Retelling) -> None:
    """The scenario once more, as the teller tells it."""
    world.teller = teller
    await scenario(world)
    await teller.end()
