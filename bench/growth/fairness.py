"""A small set beside the start of a large one: how much later its pods are ready than without it."""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import Any

from bench.core.pod_timing import watching
from bench.core.setup import new_namespace, operator, template
from bench.growth.scale import Scale
from bench.growth.sets import all_sent, create_set, new_control_plane, set_of
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS

SMALL = 10
"""Pods of the small set, in replicas of two, and of its floor: as many bare pods."""
ALONE = 5
BESIDE = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Shares of the large start at which a small set is created."""
Result = dict[str, Any]


async def measure(scale: Scale) -> Result:
    """The median of five small sets alone, and of five beside the start. Bare pods at the same moments show
    what the API server and the scheduler take, which all pods share."""
    large = scale.started
    async with new_control_plane() as (client, cluster), operator(cluster):
        alone = [await _small(client, f"alone-{number}") for number in range(ALONE)]
        await new_namespace(client, "large")
        async with watching(client, "large") as stopwatch:
            began = time.monotonic()
            await create_set(client, "large", set_of(large, 1))
            all_ready = asyncio.create_task(stopwatch.ready(large, began))
            beside = []
            for share in BESIDE:
                await stopwatch.created(int(large * share), began)
                found = await _small(client, f"beside-{share * 100:.0f}")
                beside.append({"share": share, **found, "share_after": stopwatch.existing / large})
            ready = await all_ready
    return {
        "large_replicas": large, "large_ready": ready, "pods": SMALL,
        **compared(alone, beside), "alone_runs": alone, "beside_runs": beside,
    }  # fmt: skip


def compared(alone: list[Result], beside: list[Result]) -> Result:
    """Both medians. Runs that ended after the last pod of the large start was created were not beside it:
    they are counted, and left out as long as there are others."""
    during = [run for run in beside if run["share_after"] < 1]
    return {
        "alone": _medians(alone),
        "beside": _medians(during or beside),
        "runs_too_late": len(beside) - len(during),
    }


def _medians(runs: list[Result]) -> Result:
    return {what: median(run[what] for run in runs) for what in ("ready", "floor_ready")}


async def _small(client: Client, namespace: str) -> Result:
    """Each in its own namespace: they stay, since deleting them would delay the next ones."""
    spec = template("scale-test", 1)["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
    bodies = [{"metadata": {"name": f"bare-{pod}"}, "spec": spec} for pod in range(SMALL)]
    await new_namespace(client, f"{namespace}-bare")
    async with watching(client, f"{namespace}-bare") as stopwatch:
        began = time.monotonic()
        await all_sent(
            client.create(PODS, body, namespace=f"{namespace}-bare", as_type=Object) for body in bodies
        )
        bare = await stopwatch.ready(SMALL, began)
    await new_namespace(client, namespace)
    async with watching(client, namespace) as stopwatch:
        began = time.monotonic()
        await create_set(client, namespace, set_of(SMALL // 2, 2))
        return {"ready": await stopwatch.ready(SMALL, began), "floor_ready": bare}
