"""A restart of the operator beside many running pods: until it leads, until it has looked at all of them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.control_plane import ControlPlane
from bench.core.pod_timing import watching
from bench.core.process_cost import Audit, cost
from bench.core.setup import new_namespace, operator
from bench.growth.scale import Scale
from bench.growth.sets import create_set, new_control_plane, resident_mib, set_of, until_quiet, writes

NAMESPACE = "growth"
IDLE = 5.0  # seconds with next to no CPU, after which the first passes are over
PAUSE, IDLE_CPU = 0.5, 0.02  # seconds between two readings, and of CPU in between: four percent of a core
Result = dict[str, Any]


async def measure(scale: Scale) -> Result:
    """One-pod gangs, which are the most objects for their pods. The operator runs without an election: one
    that finds the lease released needs one more write, one whose predecessor was killed waits for its end."""
    pods = scale.restarted
    async with new_control_plane() as plane:
        client, cluster = plane
        await new_namespace(client, NAMESPACE)
        audit = Audit(cluster.state.audit_log)
        empty = await _start(plane, audit)
        async with operator(cluster), watching(client, NAMESPACE) as stopwatch:
            began = time.monotonic()
            await create_set(client, NAMESPACE, set_of(pods, 1))
            await stopwatch.ready(pods, began)
            await until_quiet(audit, began)
        return {"pods": pods, **await _start(plane, audit), "without_pods": empty}


async def _start(plane: ControlPlane, audit: Audit) -> Result:
    audit.calls()
    began = time.monotonic()
    async with operator(plane.cluster) as process:
        leads, at_lead = time.monotonic() - began, cost(process.pid)
        idle = await _until_idle(process.pid, began)
        spent, resident = cost(process.pid), resident_mib(process.pid)
        calls, _ = await until_quiet(audit, began)
    return {
        "leads": leads, "idle": idle, "cpu_until_it_leads": at_lead.cpu, "cpu": spent.cpu,
        "rss_mib": spent.rss_mib, "resident_mib": resident,
        "writes": writes(calls), "by_call": dict(calls.most_common()),
    }  # fmt: skip


async def _until_idle(pid: int, since: float) -> float:
    """Seconds until the process uses next to no CPU."""
    last, cpu = time.monotonic(), cost(pid).cpu
    while time.monotonic() - last < IDLE:
        await asyncio.sleep(PAUSE)
        now = cost(pid).cpu
        if now - cpu > IDLE_CPU:
            last = time.monotonic()
        cpu = now
    return last - since
