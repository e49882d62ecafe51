"""Long scenarios: a set that is scaled at every level, and one that loses pods, is edited and recreated."""

from __future__ import annotations

from grove.api.naming import labels
from grove.kube.client.resource import PODS, SERVICES
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS
from tests.cluster.operator.support.workloads import small


async def scaled_at_every_level(world: World) -> None:
    await world.create(SETS, small())
    await world.checkpoint("created", 5)
    await world.scale(GROUPS, "small-0-model", 3)
    await world.checkpoint("group scaled out", 7)
    await world.scale(CLIQUES, "small-0-router", 3)
    await world.checkpoint("clique scaled out", 9)
    await world.scale(SETS, "small", 2)
    await world.checkpoint("set scaled out", 14)
    await world.stop_comparing_deletes()
    await world.scale(GROUPS, "small-0-model", 1)
    await world.checkpoint("group scaled in", 10)
    await world.scale(CLIQUES, "small-0-router", 1)
    await world.checkpoint("clique scaled in", 8)
    await world.scale(CLIQUES, "small-1-router", 0)
    await world.checkpoint("clique scaled to zero", 7)
    await world.scale(SETS, "small", 1)
    await world.checkpoint("set scaled in", 3)
    await world.delete(SETS, "small")
    await world.checkpoint("deleted", 0)


async def disrupted_and_recreated(world: World) -> None:
    await world.create(SETS, small(replicas=2))
    await world.checkpoint("created", 10)
    for clique in ("small-0-router", "small-1-router"):
        await world.delete(PODS, world.pods(clique=clique)[0].name)
    await world.checkpoint("pods deleted", 10)
    status = {"status": {"phase": "Failed", "reason": "Evicted"}}
    await world.patch(PODS, world.pods(clique="small-0-model-0-worker")[0].name, status, subresource="status")
    await world.checkpoint("pod failed", 10)
    await world.patch(SERVICES, "small-1", {"metadata": {"labels": {labels.COMPONENT: "other"}}})
    await world.patch(GANGS, "small-1-model-0", {"spec": {"podgroups": []}})
    await world.delete(GANGS, "small-0")
    await world.until(lambda: world.find(GANGS, "small-0"), "the gang recreated")
    await world.checkpoint("objects edited", 10)
    await world.stop_comparing_deletes()
    await world.delete(CLIQUES, "small-1-model-1-leader")
    await world.checkpoint("clique deleted", 10)
    await world.delete(SETS, "small")
    await world.until(lambda: not world.all(SETS), "the old set deleted")
    await world.create(SETS, small())  # at once: objects of the old set are still terminating
    await world.checkpoint("recreated", 5)
    await world.delete(SETS, "small")
    await world.checkpoint("deleted", 0)


SCENARIOS = {
    "scaled at every level": scaled_at_every_level,
    "disrupted and recreated": disrupted_and_recreated,
}
