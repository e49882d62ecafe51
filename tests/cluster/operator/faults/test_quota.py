"""Pods that a quota refused are created as soon as the quota permits, whatever the back-off of the key."""

from __future__ import annotations

from grove.kube.client.resource import PODS, RESOURCE_QUOTAS
from grove.kube.client.retry import Backoff
from tests.cluster.operator.scenarios.api_errors import QUOTA_CONTROLLER_START, says
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, SETS
from tests.cluster.operator.support.workloads import clique, workload

NO_RETRY = Backoff(first=3600.0, longest=3600.0)
"""A key that failed is not retried unless a watch event enqueues it."""


async def test_creation_resumes_when_quota_permits(world: World) -> None:
    """First a foreign pod is deleted, then the quota is raised, then deleted; each is the only change."""
    await world.watch(RESOURCE_QUOTAS)
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "3"}}}
    await world.create(RESOURCE_QUOTAS, quota)
    foreign = {"metadata": {"name": "foreign"}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    await world.create(PODS, foreign)
    await world.until(lambda: used(world) == "1", "a quota that is counted", QUOTA_CONTROLLER_START)

    def ours() -> int:
        return len(world.pods(part_of="greedy"))

    async with operating(world, backoff=NO_RETRY) as operator:
        await world.create(SETS, workload("greedy", clique("worker", 5)))
        await world.until(lambda: ours() == 2 and says(world, CLIQUES, "greedy-0-worker", "quota"), "refused")
        await operator.recorder.until_quiet()
        await world.delete(PODS, "foreign", grace_seconds=0)
        await world.until(lambda: ours() == 3, "the foreign pod deleted")
        await operator.recorder.until_quiet()
        await world.patch(RESOURCE_QUOTAS, "few", {"spec": {"hard": {"pods": "4"}}})
        await world.until(lambda: ours() == 4, "the quota raised")
        await operator.recorder.until_quiet()
        await world.delete(RESOURCE_QUOTAS, "few")
        await world.until_ready()


def used(world: World) -> str:
    status = world.get(RESOURCE_QUOTAS, "few").status
    return str(status.get("used", {}).get("pods"))
