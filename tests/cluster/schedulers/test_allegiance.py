"""The next operator has another default scheduler: replicas that are there stay with theirs."""

from __future__ import annotations

from grove.api.config import Scheduler, SchedulerProfile
from grove.kube.resource import PODS
from grove.operator.caches import served
from grove.schedulers.kai import POD_GROUP
from grove.schedulers.registry import backends
from tests.cluster.operator.harness import World, operating
from tests.cluster.operator.seen import GANGS, SETS
from tests.cluster.operator.workloads import clique, workload

POD_GROUPS = served(POD_GROUP)
KAI = (SchedulerProfile("kai-scheduler"),)
BEFORE, AFTER = backends(Scheduler(KAI)), backends(Scheduler(KAI, "kai-scheduler"))


def schedulers(world: World, gang: str) -> set[str]:
    """What the pods of a gang and the gang itself name."""
    named = {pod.spec["schedulerName"] for pod in world.pods(gang=gang)}
    return named | {world.get(GANGS, gang).labels["grove.io/scheduler-name"]}


async def test_no_gang_is_split_between_two_schedulers(world: World) -> None:
    body = workload("w", clique("a", 2, 2))
    body["metadata"]["labels"] = {"kai.scheduler/queue": "test"}
    async with operating(world, backends=BEFORE):
        await world.create(SETS, body)
        await world.until_whole()
    async with operating(world, backends=AFTER):
        lost = world.pods()[0]
        await world.delete(PODS, lost.name)
        await world.until(lambda: world.find(PODS, lost.name) is None and world.whole(), "its successor")
        assert schedulers(world, "w-0") == {"default-scheduler"}
        await world.patch(SETS, "w", {"spec": {"replicas": 2}})
        await world.until(lambda: len(world.pods(gang="w-1")) == 2, "a replica of the time after")
        assert schedulers(world, "w-1") == {"kai-scheduler"}
        assert world.names(POD_GROUPS) == ["w-1"]
        assert schedulers(world, "w-0") == {"default-scheduler"}
