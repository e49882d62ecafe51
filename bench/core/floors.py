"""Measures the floors: what clients without any logic need, in the same cluster and run as the operator."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from typing import Any

from bench.core import contract_objects
from bench.core.baseline_client import IN_FLIGHT, PODS_EACH, SET_NAME
from bench.core.pod_timing import Stopwatch, gone_at, watching
from bench.core.setup import CLIQUES, GANGS, new_namespace
from grove.api.naming import names
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, PODS, Resource
from grove.kube.errors import NotFound
from grove.local.cluster.lifecycle import LocalCluster

Result = dict[str, Any]


async def pods(client: Client, cluster: LocalCluster, replicas: int) -> Result:
    """Pods alone: created, then half of them deleted, then the others."""
    async with watching(client, await _namespace(client, "pods")) as stopwatch:
        result = await _started(cluster, "pods", replicas, stopwatch)
        names = await _names(client, PODS, "floor-pods")
        began, half = time.monotonic(), len(names) // 2
        await _delete(client, "floor-pods", ((PODS, name) for name in names[:half]))
        result["deleted_half"] = await stopwatch.at_most(len(names) - half, began)
        again = time.monotonic()
        await _delete(client, "floor-pods", ((PODS, name) for name in names[half:]))
        result["deleted"] = result["deleted_half"] + await stopwatch.at_most(0, again)
    await client.delete(NAMESPACES, "floor-pods", as_type=Object)
    return result


async def contract(
    client: Client, cluster: LocalCluster, replicas: int, pods_each: int = PODS_EACH, *, halved: bool = False
) -> Result:
    """All objects and statuses of the contract: created, then pods, cliques and gangs deleted. `halved`:
    between the two the pods of half of the replicas are deleted, and created again."""
    namespace = await _namespace(client, "contract")
    async with watching(client, namespace) as stopwatch:
        result = await _started(cluster, "contract", replicas, stopwatch, pods_each)
        if halved:
            result["deleted_half"] = await _half_deleted(client, namespace, replicas, pods_each, stopwatch)
        kinds = (PODS, CLIQUES, GANGS)
        found = [(kind, name) for kind in kinds for name in await _names(client, kind, namespace)]
        async with gone_at(client, namespace, *kinds) as gone:
            began = time.monotonic()
            await _delete(client, namespace, found)
            result["deleted"] = max((await gone()).values()) - began
    await client.delete(NAMESPACES, namespace, as_type=Object)
    return result


async def sets(client: Client, cluster: LocalCluster, count: int, pods_each: int) -> Result:
    """Sets of one replica, with all objects and statuses of the contract."""
    async with watching(client, await _namespace(client, "sets")) as stopwatch:
        return await _started(cluster, "sets", count, stopwatch, pods_each)


async def _half_deleted(
    client: Client, namespace: str, replicas: int, pods_each: int, stopwatch: Stopwatch
) -> float:
    """The seconds to delete the pods of half of the replicas, as a scale-in does, and nothing but these pods:
    their Services, cliques and gangs stay. Creates them again."""
    found = await client.list(CLIQUES, as_type=Object, namespace=namespace)
    uids = {each.metadata.name: each.metadata.uid for each in found.items}
    bodies = [
        contract_objects.pod(SET_NAME, replica, namespace, number, uids[clique])
        for replica in range(replicas // 2, replicas)
        for clique in (names.clique(SET_NAME, replica, contract_objects.CLIQUE),)
        for number in range(pods_each)
    ]
    began, pods = time.monotonic(), replicas * pods_each
    await _delete(client, namespace, ((PODS, body["metadata"]["name"]) for body in bodies))
    half = await stopwatch.at_most(pods - len(bodies), began)
    await _in_flight(client.create(PODS, body, namespace=namespace, as_type=Object) for body in bodies)
    await stopwatch.ready(pods, began)
    return half


async def _namespace(client: Client, kind: str) -> str:
    await new_namespace(client, f"floor-{kind}")
    return f"floor-{kind}"


async def _started(
    cluster: LocalCluster, kind: str, replicas: int, stopwatch: Stopwatch, pods_each: int = PODS_EACH
) -> Result:
    """Run the client, and wait for its pods and its last request, from the moment when it is connected."""
    count = replicas * pods_each
    command = ("-m", "bench.core.baseline_client", kind, str(cluster.kubeconfig), f"floor-{kind}")
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, str(replicas), str(pods_each), **pipes
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert await process.stdout.readline() == b"connected\n"
    began = time.monotonic()
    process.stdin.write(b"start\n")
    created = await stopwatch.created(count, began)
    ready = await stopwatch.ready(count, began)
    printed, _ = await process.communicate()
    ended = time.monotonic() - began
    assert process.returncode == 0
    return {"created": created, "ready": max(ready, ended), "cpu": float(printed)}


async def _names(client: Client, resource: Resource, namespace: str) -> list[str]:
    found = await client.list(resource, as_type=Object, namespace=namespace)
    return [each.metadata.name for each in found.items]


async def _delete(client: Client, namespace: str, found: Iterable[tuple[Resource, str]]) -> None:
    async def delete(resource: Resource, name: str) -> None:
        with suppress(NotFound):  # the garbage collector was faster
            await client.delete(resource, name, namespace=namespace, as_type=Object)

    await _in_flight(delete(resource, name) for resource, name in found)


async def _in_flight(requests: Iterable[Awaitable[object]]) -> None:
    """Send these requests, 32 at a time."""
    rest = iter(requests)

    async def worker() -> None:
        for request in rest:
            await request

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
