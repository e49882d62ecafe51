"""A scheduler with objects of its own is told of gangs, and what it was told is kept as it should be.

Nobody runs that scheduler here: its pods wait for ever, which is how they look in every weather.
"""

from __future__ import annotations

from typing import Any

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.kube.client.resource import PODS
from grove.operator.caches.registry import external_resource
from grove.schedulers.kai import POD_GROUP
from grove.schedulers.registry import backends
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import GANGS, GROUPS, SETS
from tests.cluster.operator.support.workloads import Body, clique, group, workload

POD_GROUPS = external_resource(POD_GROUP)
KAI = backends(Scheduler((SchedulerProfile("kai-scheduler"),)))


def queued() -> Body:
    pod = {"schedulerName": "kai-scheduler"}
    cliques = (clique("router", 2, 1, pod=pod), clique("leader", pod=pod), clique("worker", 2, pod=pod))
    body = workload("told", *cliques, groups=(group("model", 2, 1, "leader", "worker"),))
    body["metadata"]["labels"] = {"kai.scheduler/queue": "test"}
    return body


def spec(*minima: tuple[str, int]) -> Body:
    return {
        "minMember": sum(minimum for _, minimum in minima),
        "queue": "test",
        "topologyConstraint": {},
        "subGroups": [{"name": f"told-0-{name}", "minMember": minimum} for name, minimum in minima],
    }


def expected(replicas: int) -> dict[str, Body]:
    """All PodGroups with so many replicas of the group; the first one is in the base gang."""
    found = {"told-0": spec(("router", 1), ("model-0-leader", 1), ("model-0-worker", 2))}
    for scaled in range(replicas - 1):
        members = ((f"model-{scaled + 1}-leader", 1), (f"model-{scaled + 1}-worker", 2))
        found[f"told-0-model-{scaled}"] = spec(*members)
    return found


async def gangs_are_told_and_kept(world: World) -> None:
    await world.watch(POD_GROUPS)

    def groups() -> dict[str, Any]:
        return {found.name: found.spec for found in world.all(POD_GROUPS)}

    async def rest(name: str, replicas: int) -> None:
        pods, wanted = 2 + 3 * replicas, expected(replicas)
        await world.until(lambda: groups() == wanted, f"{name}: what KAI is told")
        await world.rest(name, when=lambda: len(world.all(PODS)) == pods and groups() == wanted)
        for found in world.all(POD_GROUPS):
            assert found.owners == (world.get(GANGS, found.name).uid,)

    await world.create(SETS, queued())
    await rest("told", 2)
    await world.patch(POD_GROUPS, "told-0", {"spec": {"minMember": 1, "subGroups": []}})
    await rest("set right", 2)
    lost = world.get(POD_GROUPS, "told-0").uid
    await world.delete(POD_GROUPS, "told-0")
    await world.until(lambda: (found := world.find(POD_GROUPS, "told-0")) and found.uid != lost, "it back")
    await rest("back", 2)
    await world.scale(GROUPS, "told-0-model", 3)
    await rest("scaled out", 3)
    gone = world.pods(gang="told-0-model-0")[0]
    await world.delete(PODS, gone.name)
    await rest("a pod replaced", 3)


gangs_are_told_and_kept.options = {"backends": KAI}  # type: ignore[attr-defined]

SCENARIOS = {"gangs are told and kept": gangs_are_told_and_kept}
