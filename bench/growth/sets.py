"""The sets of the measurements: made, deleted, and watched until the operator has no more to write."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.control_plane import ControlPlane, control_plane, install_crds
from bench.core.baseline_client import IN_FLIGHT
from bench.core.pod_timing import all_gone, gone_at
from bench.core.process_cost import Audit
from bench.core.setup import CLIQUES, GANGS, SETS, template
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS

NODES, SHAPE = 200, "2x5x4x5"
"""Of 250 pods each: room for five times the largest size."""
CONTRACT_CALLS = 5
"""Of each replica besides its pods: creates of a Service, a clique and a gang, and two statuses."""
SET_CALLS = 3
"""Of a set besides its replicas: its finalizer, and its status when created and when available."""
STILL = 25.0  # seconds; during a large start statuses may be delayed by twenty
Result = dict[str, Any]


@asynccontextmanager
async def new_control_plane() -> AsyncIterator[ControlPlane]:
    """A control plane with our CRDs, and room for the largest size."""
    async with control_plane(NODES, SHAPE) as plane:
        await install_crds(plane.client)
        yield plane


def set_of(replicas: int, pods_each: int, name: str = "growth") -> Result:
    """A set of one clique."""
    body = template("scale-test", replicas)
    body["metadata"]["name"] = name
    body["spec"]["template"]["cliques"][0]["spec"] |= {"replicas": pods_each, "minAvailable": pods_each}
    return body


async def create_set(client: Client, namespace: str, body: Result) -> None:
    await client.create(SETS, body, namespace=namespace, as_type=Object)


async def delete_set(client: Client, namespace: str, name: str = "growth") -> float:
    """Seconds until the pods, cliques and gangs of a namespace with one set are gone; waits for the set."""
    async with gone_at(client, namespace, PODS, CLIQUES, GANGS) as gone:
        began = time.monotonic()
        await client.delete(SETS, name, namespace=namespace, as_type=Object)
        last = await gone()
    await all_gone(client, SETS, namespace)
    return max(last.values()) - began


async def until_quiet(audit: Audit, since: float) -> tuple[Counter[str], float]:
    """All calls of the operator until it sends no more, and the seconds until the last one."""
    calls, last = audit.calls(), time.monotonic()
    while time.monotonic() - last < STILL:
        await asyncio.sleep(1)
        if more := audit.calls():
            calls += more
            last = time.monotonic()
    return calls, last - since


def writes(calls: Counter[str]) -> int:
    return sum(count for call, count in calls.items() if not call.startswith(("get", "list")))


async def all_sent(requests: Iterable[Awaitable[object]]) -> None:
    """Send all requests, as many in flight as the floor has."""
    left = iter(requests)

    async def worker() -> None:
        for request in left:
            await request

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


def resident_mib(pid: int) -> float:
    """Memory of a process now; `bench.core.process_cost.cost` has its peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
