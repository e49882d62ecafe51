"""One set at several sizes, with the contract floor of the same pods at each size."""

from __future__ import annotations

import time
from typing import Any

from bench.core import floors
from bench.core.pod_timing import watching
from bench.core.process_cost import Audit, cost
from bench.core.setup import new_namespace, operator
from bench.growth.progress import say
from bench.growth.scale import Scale
from bench.growth.sets import (
    CONTRACT_CALLS,
    create_set,
    delete_set,
    new_control_plane,
    resident_mib,
    set_of,
    until_quiet,
)

NAMESPACE = "growth"
Result = dict[str, Any]


async def measure(scale: Scale, pods_each: int) -> Result:
    """Floor and operator at each size, each on its own control plane."""
    rows = []
    for size in scale.sizes:
        replicas = size // pods_each
        row = {
            "pods": size,
            "floor": await contract_floor(replicas, pods_each),
            "ours": await _operator(replicas, pods_each),
        }
        say(f"gangs of {pods_each}, {size:,} pods", row)
        rows.append(row)
    return {"pods_each": pods_each, "sizes": rows}


async def contract_floor(replicas: int, pods_each: int) -> Result:
    async with new_control_plane() as (client, cluster):
        found = await floors.contract(client, cluster, replicas, pods_each)
    pods = replicas * pods_each
    calls = replicas * CONTRACT_CALLS + pods
    return {
        **found,
        "calls": calls,
        "calls_per_pod": calls / pods,
        "cpu_ms_per_pod": found["cpu"] * 1000 / pods,
    }


async def _operator(replicas: int, pods_each: int) -> Result:
    pods = replicas * pods_each
    async with new_control_plane() as (client, cluster):
        await new_namespace(client, NAMESPACE)
        audit = Audit(cluster.state.audit_log)
        async with operator(cluster) as process, watching(client, NAMESPACE) as stopwatch:
            audit.calls()
            before, idle_mib = cost(process.pid), resident_mib(process.pid)
            began = time.monotonic()
            await create_set(client, NAMESPACE, set_of(replicas, pods_each))
            created = await stopwatch.created(pods, began)
            ready = await stopwatch.ready(pods, began)
            calls, reported = await until_quiet(audit, began)
            spent, resident = cost(process.pid), resident_mib(process.pid)
            deleted = await delete_set(client, NAMESPACE)
    cpu = spent.cpu - before.cpu
    return {
        "created": created, "ready": ready, "reported": reported, "deleted": deleted,
        "calls": calls.total(), "calls_per_pod": calls.total() / pods, "by_call": dict(calls.most_common()),
        "cpu": cpu, "cpu_ms_per_pod": cpu * 1000 / pods,
        "rss_mib": spent.rss_mib, "resident_mib": resident, "idle_mib": idle_mib,
        "rss_kib_per_pod": (spent.rss_mib - idle_mib) * 1024 / pods,
    }  # fmt: skip
