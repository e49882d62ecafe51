"""A write whose outcome is unknown: it is reported, holds no worker, and costs no second pod."""

from __future__ import annotations

from grove.kube.client.resource import PODS
from tests.cluster.operator.scenarios.api_errors import complaints, says
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload


async def test_a_pod_that_cannot_be_read_is_reported_and_waited_for(world: World) -> None:
    """Its create took effect, the reply is lost, and so are the replies of a dozen reads."""
    async with operating(world, workers=1) as operator:
        operator.faults.inject("lose", resource="pods", verb="create")
        operator.faults.inject("lose", resource="pods", verb="get", times=12)
        await world.create(SETS, workload("vague", clique("worker")))
        await world.until(lambda: world.names(PODS), "the create took effect")
        await world.create(SETS, workload("clear", clique("worker")))
        await world.until(lambda: says(world, SETS, "vague", "it is unknown whether creating pods"))
        await world.until(lambda: world.find(SETS, "clear").status.get("availableReplicas") == 1, "a worker")
        await world.until_ready()
        await world.until(lambda: not complaints(world, SETS, "vague"))
        assert len(world.all(PODS, part_of="vague")) == 1
        assert operator.recorder.creates_and_deletes()["create pods vague-0-worker"] == 1
