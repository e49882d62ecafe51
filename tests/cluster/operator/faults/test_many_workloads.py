"""Many workloads at once. Twenty by default; GROVE_WORKLOADS says how many."""

from __future__ import annotations

import asyncio
import os

from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, upstream, workload

COUNT = int(os.environ.get("GROVE_WORKLOADS", "20"))


async def test_many_workloads_of_ten_pods_at_once(world: World) -> None:
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
        await world.until(lambda: len(world.pods()) == 10 * COUNT and world.whole(), "all whole", seconds)
        assert len(operator.recorder.calls) < 25 * COUNT + 4 * world.changes[PODS]
        await asyncio.gather(*(world.delete(SETS, f"w{number}") for number in range(COUNT)))
        await world.until(lambda: not world.all(SETS) and world.whole(), "all gone", seconds)


async def test_a_small_workload_does_not_wait_for_a_large_one(world: World) -> None:
    replicas = 40
    await world.create(SETS, workload("a-large", clique("worker"), replicas=replicas))
    await world.create(SETS, workload("b-small", clique("worker")))
    async with operating(world, workers=4) as operator:
        await world.until(lambda: len(world.pods()) == replicas + 1, "all pods made", 240.0)
        made = [deed for deed in operator.recorder.creates_and_deletes() if deed.startswith("create pods")]
        assert made.index("create pods b-small-0-worker") < replicas / 2, made
        await asyncio.gather(*(world.delete(SETS, name) for name in ("a-large", "b-small")))
        await world.until(lambda: not world.all(SETS) and world.whole(), "all gone", 240.0)
