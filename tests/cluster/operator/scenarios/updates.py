"""Templates that change: everything, one of a group, one alone, and while a group is scaled."""

from __future__ import annotations

from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import GROUPS, SETS
from tests.cluster.operator.support.workloads import small


async def change(world: World, name: str, image: str, *cliques: str) -> None:
    """A new image for these cliques, in one patch."""
    template = world.get(SETS, name).spec["template"]
    for clique in template["cliques"]:
        if clique["name"] in cliques:
            clique["spec"]["podSpec"]["containers"][0]["image"] = image
    await world.patch(SETS, name, {"spec": {"template": {"cliques": template["cliques"]}}})


async def changed_again_and_again(world: World) -> None:
    await world.create(SETS, small())
    await world.rest("made", 5)
    await change(world, "small", "model:2", "router", "leader", "worker")
    await world.rest("all changed", 5)
    await change(world, "small", "model:3", "leader")
    await world.rest("one of a group changed", 5)
    await world.scale(GROUPS, "small-0-model", 3)
    await world.rest("group out", 7)
    await change(world, "small", "model:4", "router")
    await world.rest("one alone changed", 7)
    await world.parent_goes()
    await world.delete(SETS, "small")
    await world.rest("deleted", 0)


async def replaced_only_where_somebody_deletes(world: World) -> None:
    body = small()
    body["spec"]["updateStrategy"] = {"type": "OnDelete"}
    await world.create(SETS, body)
    await world.rest("made", 5)
    await change(world, "small", "model:2", "router", "leader", "worker")
    await world.rest("changed", 5)
    await world.scale(SETS, "small", 2)
    await world.rest("set out", 10)


SCENARIOS = {
    "changed again and again": changed_again_and_again,
    "replaced only where somebody deletes": replaced_only_where_somebody_deletes,
}
