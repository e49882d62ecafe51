"""The runs: two floors, then the operator, each in a namespace of its own on one fresh cluster."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from bench.core.meter import OPERATOR, Audit, cost
from bench.core.stopwatch import Stopwatch, watching
from grove.api.crd import all_definitions
from grove.api.sets import PodCliqueSet
from grove.kube import config
from grove.kube.client import Client
from grove.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS
from grove.kube.wire import Object
from grove.local import binaries, cluster
from grove.local.cluster import Cluster
from grove.local.progress import Reporter
from grove.local.state import Settings, StateDir
from grove.operator.caches import resource_of

REPLICAS = 500
PODS_EACH = 2
IDLE_SECONDS = 60.0
SETS = resource_of(PodCliqueSet.KIND)
Result = dict[str, Any]


async def measure() -> Result:
    """All runs, one after another."""
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        state = StateDir(Path(folder) / "cluster")
        settings = Settings(nodes=100, gpus=8, shape="1x5x4x5", audit=True)
        reporter = Reporter(console)
        made = await asyncio.to_thread(cluster.up, state, settings, lambda: binaries.find(reporter), reporter)
        try:
            async with Client(config.load(made.kubeconfig)) as client:
                await _install(client)
                result = {
                    "pod_floor": await _floor(client, made, "pods"),
                    "floor": await _floor(client, made, "contract"),
                    "ours": await _ours(client, made),
                }
        finally:
            cluster.down(state)
    return result


async def _install(client: Client) -> None:
    for crd in all_definitions():
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd, as_type=Object)


async def _floor(client: Client, made: Cluster, kind: str) -> Result:
    namespace, pods = f"floor-{kind}", REPLICAS * PODS_EACH
    await _namespace(client, namespace)
    async with watching(client, namespace) as stopwatch:
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.core.floor", kind, str(made.kubeconfig), namespace, str(REPLICAS)
        )
        created = await stopwatch.created(pods, began)
        ready = await stopwatch.ready(pods, began)
        assert await process.wait() == 0
        ready = max(ready, time.monotonic() - began) if kind == "contract" else ready
        half = await _delete(client, namespace, pods // 2, stopwatch)
        rest = await _delete(client, namespace, pods - pods // 2, stopwatch)
    await client.delete(NAMESPACES, namespace, as_type=Object)
    return {"created": created, "ready": ready, "deleted_half": half, "deleted": half + rest}


async def _delete(client: Client, namespace: str, count: int, stopwatch: Stopwatch) -> float:
    """Bare deletes, 32 in flight; returns how long it takes until the pods are gone."""
    found = (await client.list(PODS, as_type=Object, namespace=namespace)).items
    names = iter([pod.metadata.name for pod in found[:count]])
    began = time.monotonic()

    async def worker() -> None:
        for name in names:
            await client.delete(PODS, name, namespace=namespace, as_type=Object)

    await asyncio.gather(*(worker() for _ in range(32)))
    return await stopwatch.at_most(len(found) - count, began)


async def _ours(client: Client, made: Cluster) -> Result:
    namespace, pods = "ours", REPLICAS * PODS_EACH
    await _namespace(client, namespace)
    audit = Audit(made.state.audit_log)
    async with _operator(made) as process, watching(client, namespace) as stopwatch:
        audit.calls()
        before = cost(process.pid)
        began = time.monotonic()
        await client.create(SETS, _workload(), namespace=namespace, as_type=Object)
        created = await stopwatch.created(pods, began)
        ready = await stopwatch.ready(pods, began)
        await asyncio.sleep(5)  # the last statuses trail the last pods by a second
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
    return {
        "pods": pods, "created": created, "ready": ready, "deleted_half": half, "deleted": deleted,
        "calls": calls.total(), "by_call": dict(calls.most_common()), "cpu": spent.cpu - before.cpu,
        "rss_mib": spent.rss_mib, "idle_calls": idle.total(),
    }  # fmt: skip


@asynccontextmanager
async def _operator(made: Cluster) -> AsyncIterator[asyncio.subprocess.Process]:
    """The operator, under a name of its own so that the audit log can tell it from others."""
    kubeconfig = json.loads(made.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] |= {"as": OPERATOR, "as-groups": ["system:masters"]}
    path = made.state.config("operator.kubeconfig")
    path.write_text(json.dumps(kubeconfig))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.core.operator", str(path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


async def _namespace(client: Client, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(NAMESPACES, body, as_type=Object)


def _workload() -> Result:
    text = Path(__file__).with_name("scale-test.yaml").read_text()
    body: Result = yaml.safe_load(text)
    body["spec"]["replicas"] = REPLICAS
    return body
