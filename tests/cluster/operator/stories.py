"""Stories: what a user and fate do to a workload, step by step, and what it looks like after each step.

Told once in fair weather, a story is the measure for every other time it is told: whatever the weather, each
step must come to the same picture, by the same creates and deletes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from grove.api import labels
from grove.kube.client import Client
from grove.kube.config import Config
from grove.kube.resource import NAMESPACES, PODS, SERVICES
from grove.kube.wire import Object
from tests.cluster.operator.harness import World, operating, watching
from tests.cluster.operator.picture import Picture, picture
from tests.cluster.operator.recorder import Recorder
from tests.cluster.operator.seen import CLIQUES, GANGS, GROUPS, SETS, Seen
from tests.cluster.operator.workloads import small


class Step(NamedTuple):
    """What happens, and how many pods there are once the world is whole again."""

    name: str
    act: Callable[[World], Awaitable[object]]
    pods: int
    parent_goes: bool = False
    """A set, replica or clique goes: who deletes its pods, and how, is the moment's choice, and who learns
    late of it may make pods that the garbage collector takes away. Deletes are counted up to here."""


Story = tuple[Step, ...]


def _pod(world: World, clique: str) -> Seen:
    return world.pods(clique=clique)[0]


async def _lose_routers(world: World) -> None:
    for clique in ("small-0-router", "small-1-router"):
        await world.delete(PODS, _pod(world, clique).name)


async def _fail(world: World) -> None:
    status = {"status": {"phase": "Failed", "reason": "Evicted"}}
    await world.patch(PODS, _pod(world, "small-0-model-0-worker").name, status, subresource="status")


async def _meddle(world: World) -> None:
    """The deleted gang comes last, and its return is what the teller waits for."""
    await world.patch(SERVICES, "small-1", {"metadata": {"labels": {labels.COMPONENT: "other"}}})
    await world.patch(GANGS, "small-1-model-0", {"spec": {"podgroups": []}})
    await world.delete(GANGS, "small-0")
    await world.until(lambda: world.find(GANGS, "small-0"), "the gang made again")


async def _begin_again(world: World) -> None:
    """The same set at once: what it is to be made of is still on its way out."""
    await world.delete(SETS, "small")
    await world.until(lambda: not world.all(SETS), "the old set gone")
    await world.create(SETS, small())


async def _change(world: World, image: str, *cliques: str) -> None:
    """A new image for these cliques."""
    template = world.get(SETS, "small").spec["template"]
    for clique in template["cliques"]:
        if clique["name"] in cliques:
            clique["spec"]["podSpec"]["containers"][0]["image"] = image
    await world.patch(SETS, "small", {"spec": {"template": {"cliques": template["cliques"]}}})


SCALING: Story = (
    Step("made", lambda world: world.create(SETS, small()), 5),
    Step("group out", lambda world: world.scale(GROUPS, "small-0-model", 3), 7),
    Step("clique out", lambda world: world.scale(CLIQUES, "small-0-router", 3), 9),
    Step("set out", lambda world: world.scale(SETS, "small", 2), 14),
    Step("group in", lambda world: world.scale(GROUPS, "small-0-model", 1), 10, parent_goes=True),
    Step("clique in", lambda world: world.scale(CLIQUES, "small-0-router", 1), 8),
    Step("clique to none", lambda world: world.scale(CLIQUES, "small-1-router", 0), 7),
    Step("set in", lambda world: world.scale(SETS, "small", 1), 3),
    Step("deleted", lambda world: world.delete(SETS, "small"), 0, parent_goes=True),
)

WEAR: Story = (
    Step("made", lambda world: world.create(SETS, small(replicas=2)), 10),
    Step("pods lost", _lose_routers, 10),
    Step("a pod failed", _fail, 10),
    Step("parts changed by hand", _meddle, 10),
    Step(
        "a clique deleted",
        lambda world: world.delete(CLIQUES, "small-1-model-1-leader"),
        10,
        parent_goes=True,
    ),
    Step("begun again", _begin_again, 5, parent_goes=True),
    Step("deleted", lambda world: world.delete(SETS, "small"), 0, parent_goes=True),
)

RENEWAL: Story = (
    Step("made", lambda world: world.create(SETS, small(replicas=2)), 10),
    Step("all changed", lambda world: _change(world, "model:2", "router", "leader", "worker"), 10),
    Step("one of a group changed", lambda world: _change(world, "model:3", "leader"), 10),
    Step("group out", lambda world: world.scale(GROUPS, "small-1-model", 3), 12),
    Step("one alone changed", lambda world: _change(world, "model:4", "router"), 12),
    Step("deleted", lambda world: world.delete(SETS, "small"), 0, parent_goes=True),
)

STORIES = {"scaling": SCALING, "wear": WEAR, "renewal": RENEWAL}


class Telling(NamedTuple):
    """A story as it went in fair weather."""

    pictures: Sequence[Picture]
    deeds: Counter[str]
    """Creates and deletes before a parent goes."""
    all_deeds: Counter[str]


_told: dict[Story, Telling] = {}


async def measure(client: Client, config: Config, name: str) -> Telling:
    """The story in fair weather: told once in a run, in a namespace of its own."""
    story = STORIES[name]
    if story not in _told:
        namespace = f"measure-{name}"
        await client.create(NAMESPACES, {"metadata": {"name": namespace}}, as_type=Object)
        async with watching(client, config, namespace) as world, operating(world) as operator:
            _told[story] = await _tell(world, story, operator.recorder)
        await client.delete(NAMESPACES, namespace, as_type=Object)
    return _told[story]


async def _tell(world: World, story: Story, recorder: Recorder) -> Telling:
    pictures: list[Picture] = []
    deeds: Counter[str] | None = None
    for step in story:
        if step.parent_goes and deeds is None:
            deeds = recorder.deeds()
        await step.act(world)
        await world.until(lambda step=step: len(world.all(PODS)) == step.pods and world.whole(), step.name)
        await recorder.silence()
        assert world.whole()
        pictures.append(picture(world))
    assert deeds is not None
    return Telling(pictures, deeds, recorder.deeds())


async def retell(
    world: World,
    name: str,
    telling: Telling,
    recorder: Recorder | None = None,
    *,
    counted: str = "",
    to_the_end: bool = True,
    before: Callable[[], Awaitable[object]] | None = None,
    after: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """The same story in other circumstances: every step must come to the picture of the first telling, and
    if there is a recorder, by the same deeds, `to_the_end` or until a parent goes; all deeds, or those that
    begin with what is `counted`. `before` and `after` are called around what happens in each step."""
    compared = False
    for step, expected in zip(STORIES[name], telling.pictures, strict=True):
        if step.parent_goes and not compared and recorder is not None:
            await recorder.silence()
            _compare(recorder, telling.deeds, counted)
            compared = True
        if before is not None:
            await before()
        await step.act(world)
        if after is not None:
            await after()
        try:
            await world.until_like(expected)
        except AssertionError as problem:
            raise AssertionError(f"{step.name}: {problem}") from None
    if recorder is not None and to_the_end:
        _compare(recorder, telling.all_deeds, "create")


def _compare(recorder: Recorder, expected: Counter[str], counted: str = "") -> None:
    """The same creates, and no delete that fair weather does not see. Fewer deletes are fine: the garbage
    collector may be faster, and the pictures show that nothing was left."""
    deeds = Counter({deed: n for deed, n in recorder.deeds().items() if deed.startswith(counted)})
    expected = Counter({deed: n for deed, n in expected.items() if deed.startswith(counted)})
    too_many, too_few = dict(deeds - expected), dict(expected - deeds)
    missing = {deed: count for deed, count in too_few.items() if deed.startswith("create")}
    told = "\n".join(map(str, recorder.writes()))
    assert not too_many | missing, f"too many: {too_many}, missing: {missing}\n{told}"
