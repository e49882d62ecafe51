"""A long life: scaled at every level, worn, meddled with, begun again."""

from __future__ import annotations

from grove.api.naming import labels
from grove.kube.client.resource import PODS, SERVICES
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS
from tests.cluster.operator.support.workloads import small


async def scaled_at_every_level(world: World) -> None:
    await world.create(SETS, small())
    await world.rest("made", 5)
    await world.scale(GROUPS, "small-0-model", 3)
    await world.rest("group out", 7)
    await world.scale(CLIQUES, "small-0-router", 3)
    await world.rest("clique out", 9)
    await world.scale(SETS, "small", 2)
    await world.rest("set out", 14)
    await world.parent_goes()
    await world.scale(GROUPS, "small-0-model", 1)
    await world.rest("group in", 10)
    await world.scale(CLIQUES, "small-0-router", 1)
    await world.rest("clique in", 8)
    await world.scale(CLIQUES, "small-1-router", 0)
    await world.rest("clique to none", 7)
    await world.scale(SETS, "small", 1)
    await world.rest("set in", 3)
    await world.delete(SETS, "small")
    await world.rest("deleted", 0)


async def worn_and_begun_again(world: World) -> None:
    await world.create(SETS, small(replicas=2))
    await world.rest("made", 10)
    for clique in ("small-0-router", "small-1-router"):
        await world.delete(PODS, world.pods(clique=clique)[0].name)
    await world.rest("pods lost", 10)
    status = {"status": {"phase": "Failed", "reason": "Evicted"}}
    await world.patch(PODS, world.pods(clique="small-0-model-0-worker")[0].name, status, subresource="status")
    await world.rest("a pod failed", 10)
    await world.patch(SERVICES, "small-1", {"metadata": {"labels": {labels.COMPONENT: "other"}}})
    await world.patch(GANGS, "small-1-model-0", {"spec": {"podgroups": []}})
    await world.delete(GANGS, "small-0")
    await world.until(lambda: world.find(GANGS, "small-0"), "the gang made again")
    await world.rest("parts changed by hand", 10)
    await world.parent_goes()
    await world.delete(CLIQUES, "small-1-model-1-leader")
    await world.rest("a clique deleted", 10)
    await world.delete(SETS, "small")
    await world.until(lambda: not world.all(SETS), "the old set gone")
    await world.create(SETS, small())  # at once: what it is to be made of is still on its way out
    await world.rest("begun again", 5)
    await world.delete(SETS, "small")
    await world.rest("deleted", 0)


SCENARIOS = {
    "scaled at every level": scaled_at_every_level,
    "worn and begun again": worn_and_begun_again,
}
