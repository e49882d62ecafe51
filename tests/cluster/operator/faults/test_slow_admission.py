"""A slow admission webhook in one namespace: pods are still created, the sets report it, and sets of other
namespaces are not delayed."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog

from grove.kube.client.client import Client
from tests.cluster.operator.faults.slow_webhook import slow_webhook
from tests.cluster.operator.scenarios.api_errors import last_errors, says
from tests.cluster.operator.support.harness import World, operating, watching
from tests.cluster.operator.support.objects import CLIQUES, SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.namespaces import make_namespace


async def test_pods_created_despite_slow_admission(world: World) -> None:
    """Admission takes longer than a leader's write may. The first try times out after a few seconds and is
    reported; the next one has a longer timeout."""
    with structlog.testing.capture_logs() as logs:
        async with (
            slow_webhook(world.client, world.namespace, partial(asyncio.sleep, 6)),
            operating(world, fenced=True),
        ):
            await world.create(SETS, workload("late", clique("worker", 2)))
            await world.until(lambda: says(world, SETS, "late", "creating pods takes longer"), "reported")
            assert not world.pods()
            await world.until_ready()
            await world.until(lambda: not last_errors(world, SETS, "late"), "no longer reported")
            assert not last_errors(world, CLIQUES, "late-0-worker")
    assert len([line for line in logs if line["event"] == "writes are slow"]) == 1


async def test_slow_namespace_does_not_delay_another(world: World, client: Client) -> None:
    """More creates wait for admission than there are workers and slots, until the other set is ready."""
    neighbour = f"{world.namespace}-neighbour"
    await make_namespace(client, neighbour)
    released = asyncio.Event()
    async with (
        watching(client, world.config, neighbour) as other,
        slow_webhook(client, world.namespace, released.wait) as webhook,
        operating(world, fenced=True, workers=8),
    ):
        await world.create(SETS, workload("crowd", clique("worker", 4), replicas=20))
        await world.until(lambda: webhook.reviews > 8, "the crowd waits for its pods")
        await other.create(SETS, workload("small", clique("worker", 2)))
        await other.until(other.all_ready, "ready while the crowd waits", 60)
        await world.until(lambda: says(world, SETS, "crowd", "creating pods"), "the crowd reports it")
        assert not world.pods()
        released.set()
        await world.until_ready()
        await other.delete(SETS, "small")
        await other.until(other.all_ready, "deleted")
