"""What somebody or something did to the parts of a set is mended; what fails is replaced in its place."""

from __future__ import annotations

from grove.api.formats import timestamps
from grove.kube.client.resource import PODS
from tests.cluster.operator.scenarios.repairs import OUT_OF_SERVICE, pod_at
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload


async def test_a_pod_that_fails_again_is_replaced_later(world: World) -> None:
    """The second failure in a row waits ten seconds: no storm of pods from a broken image."""
    async with operating(world):
        await world.create(SETS, workload("w", clique("a", 1)))
        await world.until_ready()
        first = pod_at(world, "w-0-a", 0)
        await world.patch(PODS, first.name, OUT_OF_SERVICE, subresource="status")
        await world.until(lambda: world.find(PODS, first.name) is None and world.whole())
        second = pod_at(world, "w-0-a", 0)
        await world.patch(PODS, second.name, OUT_OF_SERVICE, subresource="status")
        await world.until(lambda: world.find(PODS, second.name) is None and world.whole())
        third = pod_at(world, "w-0-a", 0)
        ended = max(fact["lastTransitionTime"] for fact in second.status["conditions"])
        waited = timestamps.parse(third.metadata.creation_timestamp or "") - timestamps.parse(ended)
        assert waited.total_seconds() >= 10
