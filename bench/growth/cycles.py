"""Memory of one operator process over many cycles of making and deleting the same pods."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.core.pod_timing import watching
from bench.core.process_cost import cost
from bench.core.setup import new_namespace, operator
from bench.growth.progress import say
from bench.growth.scale import Scale
from bench.growth.sets import create_set, delete_set, new_control_plane, resident_mib, set_of

NAMESPACE = "cycles"
PODS_EACH = 8
"""Fewer objects than gangs of one or two: a cycle is faster, and the caches turn over as many pods."""
SETTLING = 2.0  # seconds; the last watch events arrive after the set is gone
Result = dict[str, Any]


async def measure(scale: Scale) -> Result:
    """The memory after each cycle, when all of its objects are gone."""
    memory, replicas = [], scale.cycled // PODS_EACH
    async with new_control_plane() as (client, cluster):
        await new_namespace(client, NAMESPACE)
        async with operator(cluster) as process, watching(client, NAMESPACE) as stopwatch:
            idle = resident_mib(process.pid)
            for cycle in range(scale.cycles):
                began = time.monotonic()
                await create_set(client, NAMESPACE, set_of(replicas, PODS_EACH))
                ready = await stopwatch.ready(replicas * PODS_EACH, began)
                deleted = await delete_set(client, NAMESPACE)
                await asyncio.sleep(SETTLING)
                memory.append(resident_mib(process.pid))
                say(f"cycle {cycle + 1}", {"ready": ready, "deleted": deleted, "resident_mib": memory[-1]})
            spent = cost(process.pid)
    return {
        "pods": replicas * PODS_EACH, "cycles": scale.cycles, "idle_mib": idle, "resident_mib": memory,
        "peak_mib": spent.rss_mib, "cpu": spent.cpu,
    }  # fmt: skip
