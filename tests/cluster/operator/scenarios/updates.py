"""Rollouts: changes of all cliques, of one in a group, of one outside of groups, and with OnDelete."""

from __future__ import annotations

from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import GROUPS, SETS
from tests.cluster.operator.support.workloads import small


async def change(world: World, name: str, image: str, *cliques: str) -> None:
    """Set a new image for these cliques, in one patch."""
    template = world.get(SETS, name).spec["template"]
    for clique in template["cliques"]:
        if clique["name"] in cliques:
            clique["spec"]["podSpec"]["containers"][0]["image"] = image
    await world.patch(SETS, name, {"spec": {"template": {"cliques": template["cliques"]}}})


async def successive_updates(world: World) -> None:
    await world.create(SETS, small())
    await world.checkpoint("created", 5)
    await change(world, "small", "model:2", "router", "leader", "worker")
    await world.checkpoint("all cliques updated", 5)
    await change(world, "small", "model:3", "leader")
    await world.checkpoint("clique of a group updated", 5)
    await world.scale(GROUPS, "small-0-model", 3)
    await world.checkpoint("group scaled out", 7)
    await change(world, "small", "model:4", "router")
    await world.checkpoint("clique outside of groups updated", 7)
    await world.stop_comparing_deletes()
    await world.delete(SETS, "small")
    await world.checkpoint("deleted", 0)


async def on_delete_strategy(world: World) -> None:
    body = small()
    body["spec"]["updateStrategy"] = {"type": "OnDelete"}
    await world.create(SETS, body)
    await world.checkpoint("created", 5)
    await change(world, "small", "model:2", "router", "leader", "worker")
    await world.checkpoint("template changed", 5)
    await world.scale(SETS, "small", 2)
    await world.checkpoint("set scaled out", 10)


SCENARIOS = {
    "successive updates": successive_updates,
    "OnDelete strategy": on_delete_strategy,
}
