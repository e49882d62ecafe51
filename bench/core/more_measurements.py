"""Further rows: groups with scaled gangs, start of a small set, memory and deletion of a large set."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.core.pod_timing import all_gone, watching
from bench.core.process_cost import Audit, cost
from bench.core.setup import OURS, SETS, OperatorUnderTest, new_namespace, operator, template
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS
from grove.local.cluster.lifecycle import LocalCluster

GROUPED = 100
CONTRACT_CALLS = 30
"""Per replica: creates of a Service, a group, 7 cliques, 2 gangs and 7 pods, 10 statuses, 2 gates removed."""
LARGE = 5000
SETTLING = 5.0  # seconds; the last statuses are written about one second after the last pods
STILL = 25.0  # seconds; during a large start statuses may be delayed by twenty
Result = dict[str, Any]


async def grouped(client: Client, cluster: LocalCluster) -> Result:
    """100 replicas of a frontend and a group of three, one of which is a scaled gang that starts last."""
    pods = GROUPED * 7
    await new_namespace(client, "grouped")
    audit = Audit(cluster.state.audit_log)
    async with operator(cluster) as process, watching(client, "grouped") as stopwatch:
        audit.calls()
        before, began = cost(process.pid), time.monotonic()
        await client.create(SETS, template("groups", GROUPED), namespace="grouped", as_type=Object)
        created = await stopwatch.created(pods, began)
        ready = await stopwatch.ready(pods, began)
        await asyncio.sleep(SETTLING)
        calls, spent = audit.calls(), cost(process.pid)
        began = time.monotonic()
        await client.delete(SETS, "groups", namespace="grouped", as_type=Object)
        deleted = await stopwatch.at_most(0, began)
        await all_gone(client, SETS, "grouped")
    return {
        "pods": pods, "created": created, "ready": ready, "deleted": deleted, "calls": calls.total(),
        "contract_calls": GROUPED * CONTRACT_CALLS, "by_call": dict(calls.most_common()),
        "cpu": spent.cpu - before.cpu, "rss_mib": spent.rss_mib,
    }  # fmt: skip


async def small(client: Client, cluster: LocalCluster, tested: OperatorUnderTest = OURS) -> Result:
    """From apply to ready: ten pods of a set against ten bare pods, the median of five runs each."""
    await new_namespace(client, "small")
    bare, ours = [], []
    async with tested.running(cluster), watching(client, "small") as stopwatch:
        for number in range(5):
            spec = template("scale-test", 1)["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
            began = time.monotonic()
            bodies = [{"metadata": {"name": f"bare-{number}-{pod}"}, "spec": spec} for pod in range(10)]
            await asyncio.gather(
                *(client.create(PODS, body, namespace="small", as_type=Object) for body in bodies)
            )
            bare.append(await stopwatch.ready(10, began))
            await client.raw("DELETE", PODS.path("small"))
            await stopwatch.at_most(0, began)
            began = time.monotonic()
            await client.create(SETS, template("scale-test", 5), namespace="small", as_type=Object)
            ours.append(await stopwatch.ready(10, began))
            await client.delete(SETS, "scale-test", namespace="small", as_type=Object)
            await stopwatch.at_most(0, began)
            await all_gone(client, SETS, "small")
    return {"pods": 10, "floor_ready": sorted(bare)[2], "ready": sorted(ours)[2]}


async def large(client: Client, cluster: LocalCluster) -> Result:
    """5,000 cliques of one pod: the operator's memory, the writes of a restart, and the time of deletion."""
    await new_namespace(client, "large")
    body = template("scale-test", LARGE)
    body["spec"]["template"]["cliques"][0]["spec"] |= {"replicas": 1, "minAvailable": 1}
    audit = Audit(cluster.state.audit_log)
    async with watching(client, "large") as stopwatch:
        async with operator(cluster) as process:
            began = time.monotonic()
            await client.create(SETS, body, namespace="large", as_type=Object)
            ready = await stopwatch.ready(LARGE, began)
            last_call = await _last_call(audit, began)
            spent = cost(process.pid)
        async with operator(cluster) as process:
            await asyncio.sleep(4 * SETTLING)
            restarted, calls = cost(process.pid), audit.calls()
            began = time.monotonic()
            await client.delete(SETS, "scale-test", namespace="large", as_type=Object)
            deleted = await stopwatch.at_most(0, began)
            await all_gone(client, SETS, "large")
    writes = {call: count for call, count in calls.items() if not call.startswith(("get", "list"))}
    return {
        "pods": LARGE, "ready": ready, "told": last_call, "deleted": deleted, "rss_mib": spent.rss_mib,
        "rss_mib_restarted": restarted.rss_mib, "restart_writes": sum(writes.values()),
    }  # fmt: skip


async def _last_call(audit: Audit, since: float) -> float:
    """Seconds until the last call of the operator; polls the audit log until there are no more calls."""
    last = time.monotonic()
    audit.calls()
    while time.monotonic() - last < STILL:
        await asyncio.sleep(1)
        if audit.calls():
            last = time.monotonic()
    return last - since
