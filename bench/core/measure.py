"""The runs: two floors, then the operator, each in its own namespace of one new cluster."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from rich.console import Console

from bench.core import foreign_pods, more_measurements, updates_and_restarts
from bench.core.pod_timing import Stopwatch, all_gone, watching
from bench.core.process_cost import Audit, cost
from bench.core.setup import SETS, new_namespace, operator, template
from grove.api.crds.crd import all_definitions
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS
from grove.local.build import binaries
from grove.local.build.versions import default_minor
from grove.local.cluster import lifecycle
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterSettings, StateDir

REPLICAS = 500
PODS_EACH = 2
IDLE_SECONDS = 60.0
Result = dict[str, Any]


async def measure() -> Result:
    """All runs, one after another."""
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        state = StateDir(Path(folder) / "cluster")
        settings = ClusterSettings(kubernetes=default_minor(), nodes=100, gpus=8, shape="1x5x4x5", audit=True)
        reporter = ProgressReporter(console)
        cluster = await asyncio.to_thread(
            lifecycle.up, state, settings, lambda minor: binaries.find(minor, reporter), reporter
        )
        try:
            async with Client(config.load(cluster.kubeconfig)) as client:
                await _install(client)
                result = {
                    "pod_floor": await _floor(client, cluster, "pods"),
                    "floor": await _floor(client, cluster, "contract"),
                    "ours": await _ours(client, cluster),
                    "grouped": await more_measurements.grouped(client, cluster),
                    "small": await more_measurements.small(client, cluster),
                    "updated": await updates_and_restarts.updated(client, cluster),
                    "recycled": await updates_and_restarts.recycled(client, cluster),
                    "contended": await foreign_pods.contended(client, cluster),
                    "large": await more_measurements.large(client, cluster),
                    "crowded": await foreign_pods.crowded(client, cluster),
                }
        finally:
            lifecycle.down(state)
    return result


async def _install(client: Client) -> None:
    for crd in all_definitions():
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd, as_type=Object)


async def _floor(client: Client, cluster: LocalCluster, kind: str) -> Result:
    namespace, pods = f"floor-{kind}", REPLICAS * PODS_EACH
    await new_namespace(client, namespace)
    async with watching(client, namespace) as stopwatch:
        before, began = getrusage(RUSAGE_CHILDREN), time.monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bench.core.baseline_client",
            kind,
            str(cluster.kubeconfig),
            namespace,
            str(REPLICAS),
        )
        created = await stopwatch.created(pods, began)
        ready = await stopwatch.ready(pods, began)
        assert await process.wait() == 0
        spent = getrusage(RUSAGE_CHILDREN)
        ready = max(ready, time.monotonic() - began) if kind == "contract" else ready
        half = await _delete(client, namespace, pods // 2, stopwatch)
        rest = await _delete(client, namespace, pods - pods // 2, stopwatch)
    await client.delete(NAMESPACES, namespace, as_type=Object)
    cpu = spent.ru_utime + spent.ru_stime - before.ru_utime - before.ru_stime
    return {"created": created, "ready": ready, "deleted_half": half, "deleted": half + rest, "cpu": cpu}


async def _delete(client: Client, namespace: str, count: int, stopwatch: Stopwatch) -> float:
    """Delete the pods, 32 requests in flight; returns the seconds until all are deleted."""
    found = (await client.list(PODS, as_type=Object, namespace=namespace)).items
    names = iter([pod.metadata.name for pod in found[:count]])
    began = time.monotonic()

    async def worker() -> None:
        for name in names:
            await client.delete(PODS, name, namespace=namespace, as_type=Object)

    await asyncio.gather(*(worker() for _ in range(32)))
    return await stopwatch.at_most(len(found) - count, began)


async def _ours(client: Client, cluster: LocalCluster) -> Result:
    namespace, pods = "ours", REPLICAS * PODS_EACH
    await new_namespace(client, namespace)
    audit = Audit(cluster.state.audit_log)
    async with operator(cluster) as process, watching(client, namespace) as stopwatch:
        audit.calls()
        before = cost(process.pid)
        began = time.monotonic()
        await client.create(SETS, template("scale-test", REPLICAS), namespace=namespace, as_type=Object)
        created = await stopwatch.created(pods, began)
        ready = await stopwatch.ready(pods, began)
        await asyncio.sleep(5)  # seconds; the last statuses are written about one second after the last pods
        calls, spent = audit.calls(), cost(process.pid)
        await asyncio.sleep(IDLE_SECONDS)
        idle = audit.calls()
        began = time.monotonic()
        await client.set_scale(SETS, "scale-test", REPLICAS // 2, namespace=namespace)
        half = await stopwatch.at_most(pods // 2, began)
        await client.set_scale(SETS, "scale-test", REPLICAS, namespace=namespace)
        await stopwatch.ready(pods, began)
        began = time.monotonic()
        await client.delete(SETS, "scale-test", namespace=namespace, as_type=Object)
        deleted = await stopwatch.at_most(0, began)
        await all_gone(client, SETS, namespace)
    return {
        "pods": pods, "created": created, "ready": ready, "deleted_half": half, "deleted": deleted,
        "calls": calls.total(), "by_call": dict(calls.most_common()), "cpu": spent.cpu - before.cpu,
        "rss_mib": spent.rss_mib, "idle_calls": idle.total(),
    }  # fmt: skip
