"""Many workloads at once: GROVE_WORKLOADS of them, 20 by default."""

from __future__ import annotations

import asyncio
import os

from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, upstream, workload

COUNT = int(os.environ.get("GROVE_WORKLOADS", "20"))


async def test_many_workloads_at_once_become_ready(world: World) -> None:
    seconds = max(240.0, COUNT * 3.0)
    async with operating(world) as operator:
        bodies = []
        for number in range(COUNT):
            body = upstream("workload1" if number % 2 else "workload2")
            body["metadata"]["name"] = f"w{number}"
            bodies.append(body)
        await asyncio.gather(*(world.create(SETS, body) for body in bodies))
        await world.until(
            lambda: all(found.status.get("availableReplicas") == 1 for found in world.all(SETS)),
            "every set available",
            seconds,
        )
        await world.until(
            lambda: len(world.pods()) == 10 * COUNT and world.all_ready(), "all objects ready", seconds
        )
        assert len(operator.recorder.calls) < 25 * COUNT + 4 * world.changes[PODS]
        await asyncio.gather(*(world.delete(SETS, f"w{number}") for number in range(COUNT)))
        await world.until(lambda: not world.all(SETS) and world.all_ready(), "all deleted", seconds)


async def test_small_workload_does_not_wait_for_large_one(world: World) -> None:
    replicas = 40
    await world.create(SETS, workload("a-large", clique("worker"), replicas=replicas))
    await world.create(SETS, workload("b-small", clique("worker")))
    async with operating(world, workers=4) as operator:
        await world.until(lambda: len(world.pods()) == replicas + 1, "all pods created", 240.0)
        writes = operator.recorder.creates_and_deletes()
        creates = [write for write in writes if write.startswith("create pods")]
        assert creates.index("create pods b-small-0-worker") < replicas / 2, creates
        await asyncio.gather(*(world.delete(SETS, name) for name in ("a-large", "b-small")))
        await world.until(lambda: not world.all(SETS) and world.all_ready(), "all deleted", 240.0)
