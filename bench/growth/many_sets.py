"""Many small sets that are created at once."""

from __future__ import annotations

import time
from typing import Any

from bench.core import floors
from bench.core.pod_timing import watching
from bench.core.process_cost import Audit, cost
from bench.core.setup import new_namespace, operator
from bench.growth.scale import PODS_OF_A_SET, Scale
from bench.growth.sets import (
    CONTRACT_CALLS,
    SET_CALLS,
    all_sent,
    create_set,
    new_control_plane,
    set_of,
    until_quiet,
)

NAMESPACE = "sets"
Result = dict[str, Any]


async def measure(scale: Scale) -> Result:
    """Sets of one replica of five pods, and the floor that writes as many sets."""
    pods = scale.sets * PODS_OF_A_SET
    floor = await _floor(scale.sets)
    async with new_control_plane() as (client, cluster):
        await new_namespace(client, NAMESPACE)
        audit = Audit(cluster.state.audit_log)
        async with operator(cluster) as process, watching(client, NAMESPACE) as stopwatch:
            audit.calls()
            before, began = cost(process.pid), time.monotonic()
            bodies = [set_of(1, PODS_OF_A_SET, f"set-{number}") for number in range(scale.sets)]
            await all_sent(create_set(client, NAMESPACE, body) for body in bodies)
            created = await stopwatch.created(pods, began)
            ready = await stopwatch.ready(pods, began)
            calls, reported = await until_quiet(audit, began)
            spent = cost(process.pid)
    ours = {
        "created": created, "ready": ready, "reported": reported, "calls": calls.total(),
        "calls_per_pod": calls.total() / pods, "by_call": dict(calls.most_common()),
        "cpu": spent.cpu - before.cpu, "rss_mib": spent.rss_mib,
    }  # fmt: skip
    return {"sets": scale.sets, "pods": pods, "floor": floor, "ours": ours}


async def _floor(sets: int) -> Result:
    async with new_control_plane() as (client, cluster):
        found = await floors.sets(client, cluster, sets, PODS_OF_A_SET)
    pods = sets * PODS_OF_A_SET
    calls = sets * (CONTRACT_CALLS + SET_CALLS) + pods
    return {
        **found,
        "calls": calls,
        "calls_per_pod": calls / pods,
        "cpu_ms_per_pod": found["cpu"] * 1000 / pods,
    }
