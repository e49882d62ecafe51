"""The runs: two floors, then the operator, each in its own namespace of one new cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any

from bench.control_plane import control_plane, install_crds
from bench.core import floors, foreign_pods, more_measurements, updates_and_restarts
from bench.core.pod_timing import all_gone, gone_at, watching
from bench.core.process_cost import Audit, cost
from bench.core.setup import CLIQUES, GANGS, OURS, SETS, OperatorUnderTest, new_namespace, template
from bench.environment import environment
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS
from grove.local.cluster.lifecycle import LocalCluster

REPLICAS = 500
NODES, SHAPE = 100, "1x5x4x5"
IDLE_SECONDS = 60.0
SETTLING = 5.0  # seconds; the last statuses are written about one second after the last pods
Result = dict[str, Any]
Measurement = Callable[[Client, LocalCluster], Awaitable[Result]]


def measurements(replicas: int = REPLICAS) -> Mapping[str, Measurement]:
    """All measurements by name, in their order; `replicas` of two pods each in the first three."""
    return {
        "pod_floor": partial(floors.pods, replicas=replicas),
        "floor": partial(floors.contract, replicas=replicas, halved=True),
        "ours": partial(start_and_deletion, replicas=replicas),
        "grouped": more_measurements.grouped,
        "small": more_measurements.small,
        "updated": updates_and_restarts.updated,
        "recycled": updates_and_restarts.recycled,
        "contended": foreign_pods.contended,
        "large": more_measurements.large,
        "crowded": foreign_pods.crowded,
    }


async def measure(only: Collection[str] = (), replicas: int = REPLICAS) -> Result:
    """These measurements, or all of them, one after another."""
    async with control_plane(NODES, SHAPE) as (client, cluster):
        await install_crds(client)
        result: Result = {"environment": environment(cluster.record.settings.kubernetes)}
        for name, measurement in measurements(replicas).items():
            if not only or name in only:
                result[name] = await measurement(client, cluster)
    return result


async def start_and_deletion(
    client: Client, cluster: LocalCluster, replicas: int, tested: OperatorUnderTest = OURS
) -> Result:
    """A set of this many replicas: started, at rest, annotated, scaled to half and back, and deleted."""
    namespace, pods, name = "started", replicas * floors.PODS_EACH, "scale-test"
    await new_namespace(client, namespace)
    audit = Audit(cluster.state.audit_log, tested.user)
    async with tested.running(cluster) as pid, watching(client, namespace) as stopwatch:
        audit.calls()
        before = cost(pid)
        began = time.monotonic()
        await client.create(SETS, template(name, replicas), namespace=namespace, as_type=Object)
        created = await stopwatch.created(pods, began)
        ready = await stopwatch.ready(pods, began)
        await asyncio.sleep(SETTLING)
        calls, spent = audit.calls(), cost(pid)
        await asyncio.sleep(IDLE_SECONDS)
        idle = audit.calls()
        touched = {"metadata": {"annotations": {"example.com/touched": "yes"}}}
        await client.patch(SETS, name, touched, namespace=namespace, as_type=Object)
        await asyncio.sleep(SETTLING)
        after_annotation = audit.calls()
        began = time.monotonic()
        await client.set_scale(SETS, name, replicas // 2, namespace=namespace)
        half = await stopwatch.at_most(replicas // 2 * floors.PODS_EACH, began)
        await client.set_scale(SETS, name, replicas, namespace=namespace)
        await stopwatch.ready(pods, began)
        deleted = await _deleted(client, namespace, name)
    return {
        "pods": pods, "created": created, "ready": ready, "deleted_half": half, **deleted,
        "calls": calls.total(), "by_call": dict(calls.most_common()), "cpu": spent.cpu - before.cpu,
        "rss_mib": spent.rss_mib, "idle_calls": idle.total(), "annotation_calls": after_annotation.total(),
    }  # fmt: skip


async def _deleted(client: Client, namespace: str, name: str) -> Result:
    """Delete the set; the seconds until its pods, cliques and gangs are gone, and until its pods are."""
    async with gone_at(client, namespace, PODS, CLIQUES, GANGS) as gone:
        began = time.monotonic()
        await client.delete(SETS, name, namespace=namespace, as_type=Object)
        last = await gone()
    await all_gone(client, SETS, namespace)
    return {"deleted": max(last.values()) - began, "pods_deleted": last[PODS.plural] - began}
