"""Placement beside the pods of others: gangs that compete with them for every node, and their memory."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from bench.core.pod_timing import Stopwatch, all_gone, watching
from bench.core.process_cost import Audit, cost
from bench.core.setup import SETS, new_namespace, operator, template
from grove.api.types.clustertopology import ClusterTopology
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PODS
from grove.local.cluster.cluster_shape import node_manifests, parse_shape
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.resources import resource_of

RACKS, HOSTS = 20, 5
"""Of the cluster. Each gang needs a rack."""
COMPETING = 20
"""Pods of others that wait for every node that gets free, besides one on each node."""
PAUSE = 0.1  # seconds between the ends of two pods of others
CROWD = 5000
"""Pods of others that have nodes, for the memory of the operator."""
NODES_MORE, SHAPE_MORE = 1000, "11x5x4x5"
"""The first of its zones is the one that exists."""
REPLICAS = 500
SETTLING = 5.0  # seconds; the last statuses are written about one second after the last pods
IN_FLIGHT = 32
TOPOLOGIES = resource_of(ClusterTopology.KIND)
LEVELS = {level: f"topology.kubernetes.io/{level}" for level in ("zone", "block", "rack")}
Result = dict[str, Any]


async def contended(client: Client, cluster: LocalCluster) -> Result:
    """20 gangs of a rack each. A pod of others is on every node, and more of them wait: gangs get racks only
    because nodes are held for them, while the pods of others end one after another."""
    pods = RACKS * HOSTS
    levels = [{"domain": level, "key": key} for level, key in LEVELS.items()]
    kind = {"apiVersion": TOPOLOGIES.api_version, "kind": TOPOLOGIES.kind}
    topology = {**kind, "metadata": {"name": "local"}, "spec": {"levels": levels}}
    await client.create(TOPOLOGIES, topology, as_type=Object)
    await new_namespace(client, "contended")
    audit = Audit(cluster.state.audit_log)
    async with (
        _foreign_pods(client, "others", (_gpu_pod(f"other-{i}") for i in range(pods + COMPETING))) as others,
        operator(cluster, holdAfter="1s") as process,
        watching(client, "contended") as stopwatch,
    ):
        await others.ready(pods, time.monotonic())
        audit.calls()
        before, began = cost(process.pid), time.monotonic()
        await client.create(SETS, template("contended", RACKS), namespace="contended", as_type=Object)
        created = await stopwatch.created(pods, began)
        found = (await client.list(PODS, as_type=Object, namespace="others")).items
        for pod in found:
            await client.delete(PODS, pod.metadata.name, namespace="others", as_type=Object)
            await asyncio.sleep(PAUSE)
        ready = await stopwatch.ready(pods, began)
        await asyncio.sleep(SETTLING)
        calls, spent = audit.calls(), cost(process.pid)
        await client.delete(SETS, "contended", namespace="contended", as_type=Object)
        await all_gone(client, SETS, "contended")
    await client.delete(TOPOLOGIES, "local", as_type=Object)
    return {
        "pods": pods, "foreign": pods + COMPETING, "created": created, "ready": ready,
        "calls": calls.total(), "by_call": dict(calls.most_common()), "cpu": spent.cpu - before.cpu,
        "rss_mib": spent.rss_mib,
    }  # fmt: skip


async def crowded(client: Client, cluster: LocalCluster) -> Result:
    """The memory of an operator that starts 1,000 pods, on 1,100 nodes with 5,000 pods of others."""
    listed = [each["metadata"]["name"] for each in node_manifests(parse_shape(SHAPE_MORE), 100, 8)]
    more = itertools.islice(node_manifests(parse_shape(SHAPE_MORE), 100 + NODES_MORE, 8), 100, None)
    await _all(client.create(NODES, each, as_type=Object) for each in more)
    await new_namespace(client, "crowded")
    crowd = (_bound_pod(f"other-{i}", node) for i, node in zip(range(CROWD), itertools.cycle(listed)))
    async with (
        _foreign_pods(client, "crowd", crowd) as others,
        operator(cluster) as process,
        watching(client, "crowded") as stopwatch,
    ):
        await others.created(CROWD, time.monotonic())
        began = time.monotonic()
        await client.create(SETS, template("scale-test", REPLICAS), namespace="crowded", as_type=Object)
        ready = await stopwatch.ready(2 * REPLICAS, began)
        await asyncio.sleep(SETTLING)
        spent = cost(process.pid)
    return {
        "pods": 2 * REPLICAS, "foreign": CROWD, "nodes": len(listed) + NODES_MORE, "ready": ready,
        "rss_mib": spent.rss_mib,
    }  # fmt: skip


@asynccontextmanager
async def _foreign_pods(client: Client, namespace: str, bodies: Iterable[Result]) -> AsyncIterator[Stopwatch]:
    """Pods of others in a namespace of their own. They stay: to delete thousands takes the API server longer
    than it may take for an answer."""
    await new_namespace(client, namespace)
    async with watching(client, namespace) as stopwatch:
        await _all(client.create(PODS, body, namespace=namespace, as_type=Object) for body in bodies)
        yield stopwatch


async def _all(requests: Iterable[Any]) -> None:
    """Send all requests, 32 in flight."""
    left = iter(requests)

    async def worker() -> None:
        for request in left:
            await request

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))


def _gpu_pod(name: str) -> Result:
    container = {"name": "main", "image": "other", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name}, "spec": spec}


def _bound_pod(name: str, node: str) -> Result:
    container = {"name": "main", "image": "other", "resources": {"requests": {"memory": "80Mi"}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "nodeName": node}}
