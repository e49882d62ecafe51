"""A write whose outcome is unknown is reported, occupies no worker, and does not lead to a second pod."""

from __future__ import annotations

from grove.kube.client.resource import PODS
from tests.cluster.operator.scenarios.api_errors import last_errors, says
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload


async def test_pod_with_unknown_outcome_is_reported(world: World) -> None:
    """The create of the pod takes effect, its reply is lost, and so are the replies of a dozen reads."""
    async with operating(world, workers=1) as operator:
        operator.faults.inject("lose", resource="pods", verb="create")
        operator.faults.inject("lose", resource="pods", verb="get", times=12)
        await world.create(SETS, workload("vague", clique("worker")))
        await world.until(lambda: world.names(PODS), "the create took effect")
        await world.create(SETS, workload("clear", clique("worker")))
        await world.until(lambda: says(world, SETS, "vague", "it is unknown whether creating pods"))
        await world.until(lambda: world.find(SETS, "clear").status.get("availableReplicas") == 1, "a worker")
        await world.until_ready()
        await world.until(lambda: not last_errors(world, SETS, "vague"))
        assert len(world.all(PODS, part_of="vague")) == 1
        assert operator.recorder.creates_and_deletes()["create pods vague-0-worker"] == 1
