"""Replacement of pods that fail repeatedly."""

from __future__ import annotations

from grove.api.formats import timestamps
from grove.kube.client.resource import PODS
from tests.cluster.operator.scenarios.repairs import EVICTED, pod_at
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload


async def test_second_pod_failure_delays_replacement(world: World) -> None:
    """After the second failure in a row the replacement waits ten seconds, so that a broken image does not
    cause pods to be created in a tight loop."""
    async with operating(world):
        await world.create(SETS, workload("w", clique("a", 1)))
        await world.until_ready()
        first = pod_at(world, "w-0-a", 0)
        await world.patch(PODS, first.name, EVICTED, subresource="status")
        await world.until(lambda: world.find(PODS, first.name) is None and world.all_ready())
        second = pod_at(world, "w-0-a", 0)
        await world.patch(PODS, second.name, EVICTED, subresource="status")
        await world.until(lambda: world.find(PODS, second.name) is None and world.all_ready())
        third = pod_at(world, "w-0-a", 0)
        ended = max(each["lastTransitionTime"] for each in second.status["conditions"])
        waited = timestamps.parse(third.metadata.creation_timestamp or "") - timestamps.parse(ended)
        assert waited.total_seconds() >= 10
