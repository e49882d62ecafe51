"""Objects of a scheduler (KAI's PodGroups) are created for gangs and repaired when they are edited.

The scheduler itself does not run here: its pods stay pending, in every run.
"""

from __future__ import annotations

from typing import Any

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.kube.client.resource import PODS
from grove.operator.caches.resources import external_resource
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
    body = workload("queued", *cliques, groups=(group("model", 2, 1, "leader", "worker"),))
    body["metadata"]["labels"] = {"kai.scheduler/queue": "test"}
    return body


def spec(*minima: tuple[str, int]) -> Body:
    return {
        "minMember": sum(minimum for _, minimum in minima),
        "queue": "test",
        "topologyConstraint": {},
        "subGroups": [{"name": f"queued-0-{name}", "minMember": minimum} for name, minimum in minima],
    }


def expected(replicas: int) -> dict[str, Body]:
    """All PodGroups for so many replicas of the group; the first replica is in the base gang."""
    found = {"queued-0": spec(("router", 1), ("model-0-leader", 1), ("model-0-worker", 2))}
    for scaled in range(replicas - 1):
        members = ((f"model-{scaled + 1}-leader", 1), (f"model-{scaled + 1}-worker", 2))
        found[f"queued-0-model-{scaled}"] = spec(*members)
    return found


async def pod_groups_created_and_repaired(world: World) -> None:
    await world.watch(POD_GROUPS)

    def groups() -> dict[str, Any]:
        return {found.name: found.spec for found in world.all(POD_GROUPS)}

    async def checkpoint(name: str, replicas: int) -> None:
        pods, wanted = 2 + 3 * replicas, expected(replicas)
        await world.until(lambda: groups() == wanted, f"{name}: the PodGroups")
        await world.checkpoint(name, when=lambda: len(world.all(PODS)) == pods and groups() == wanted)
        for found in world.all(POD_GROUPS):
            assert found.owners == (world.get(GANGS, found.name).uid,)

    await world.create(SETS, queued())
    await checkpoint("created", 2)
    await world.patch(POD_GROUPS, "queued-0", {"spec": {"minMember": 1, "subGroups": []}})
    await checkpoint("repaired", 2)
    lost = world.get(POD_GROUPS, "queued-0").uid
    await world.delete(POD_GROUPS, "queued-0")
    await world.until(
        lambda: (found := world.find(POD_GROUPS, "queued-0")) and found.uid != lost, "a new PodGroup"
    )
    await checkpoint("recreated", 2)
    await world.scale(GROUPS, "queued-0-model", 3)
    await checkpoint("scaled out", 3)
    deleted = world.pods(gang="queued-0-model-0")[0]
    await world.delete(PODS, deleted.name)
    await checkpoint("pod replaced", 3)


pod_groups_created_and_repaired.options = {"backends": KAI}  # type: ignore[attr-defined]

SCENARIOS = {"pod groups created and repaired": pod_groups_created_and_repaired}
