"""A small set beside the start of a large one: how much later its pods are ready than without it."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from statistics import median
from typing import Any, NamedTuple

from bench.core.pod_timing import Stopwatch, watching
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
    async with new_control_plane() as (client, cluster), operator(cluster), AsyncExitStack() as stack:
        alone = [await _start(client, await _prepared(client, stack, f"alone-{n}")) for n in range(ALONE)]
        smalls = {share: await _prepared(client, stack, f"beside-{share * 100:.0f}") for share in BESIDE}
        await new_namespace(client, "large")
        stopwatch = await stack.enter_async_context(watching(client, "large"))
        began = time.monotonic()
        await create_set(client, "large", set_of(large, 1))
        all_ready = asyncio.create_task(stopwatch.ready(large, began))
        beside = []
        for share, small in smalls.items():
            at = await stopwatch.created(int(large * share), began)
            found = await _start(client, small)
            beside.append({"share": share, "at": at, **found, "share_after": stopwatch.existing / large})
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


class _Small(NamedTuple):
    """The namespaces of a small set and of its floor, watched. They are made before the large start, beside
    which a new watch takes many seconds, and stay: deleting them would delay the next ones."""

    namespace: str
    pods: Stopwatch
    bare: Stopwatch

    @property
    def bare_namespace(self) -> str:
        return f"{self.namespace}-bare"


async def _prepared(client: Client, stack: AsyncExitStack, namespace: str) -> _Small:
    stopwatches = []
    for each in (namespace, f"{namespace}-bare"):
        await new_namespace(client, each)
        stopwatches.append(await stack.enter_async_context(watching(client, each)))
    return _Small(namespace, *stopwatches)


async def _start(client: Client, small: _Small) -> Result:
    """Seconds until ten bare pods are ready, then until those of a set are."""
    spec = template("scale-test", 1)["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
    bodies = [{"metadata": {"name": f"bare-{pod}"}, "spec": spec} for pod in range(SMALL)]
    began = time.monotonic()
    await all_sent(
        client.create(PODS, body, namespace=small.bare_namespace, as_type=Object) for body in bodies
    )
    bare = await small.bare.ready(SMALL, began)
    began = time.monotonic()
    await create_set(client, small.namespace, set_of(SMALL // 2, 2))
    return {"ready": await small.pods.ready(SMALL, began), "floor_ready": bare}
