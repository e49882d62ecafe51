"""A trial on a real control plane: what `shardSelector` selects, and what the watches of a start contain.

The API server needs the feature gate ShardedListAndWatch (alpha, off by default in 1.37). Watches without a
selector and with that of each half of the hash space are open while an operator starts sets in namespaces of
both halves; a second cluster without the gate shows what an API server does that does not know the option.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from bench.core.pod_timing import watching
from bench.core.setup import CLIQUES, GANGS, SETS, new_namespace, operator, template
from bench.environment import environment
from bench.sharding.ranges import equal_ranges, hash_of
from grove.api.crds.crd import all_definitions
from grove.api.naming import labels
from grove.kube.auth import config
from grove.kube.client import watch
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS, SERVICES, Resource, query
from grove.kube.client.transport import HttpTransport, Request
from grove.local.build import binaries
from grove.local.build.versions import default_minor
from grove.local.cluster import lifecycle
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterSettings, StateDir

GATE = "ShardedListAndWatch"
NAMESPACES = ("billing", "coding", "search", "speech", "team-0", "team-1", "team-2", "team-3")
REPLICAS = 10
"""Of two pods each, in each namespace."""
SETTLING = 5.0
"""Seconds without an event, after which all statuses are written and watched."""
KINDS = (PODS, CLIQUES, GANGS, SERVICES, SETS)
Result = dict[str, Any]


class _Item(msgspec.Struct):
    metadata: dict[str, Any]


class _List(msgspec.Struct):
    items: list[_Item]
    metadata: dict[str, Any]


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str
    namespace: str = ""


class _Watched(msgspec.Struct):
    metadata: _Metadata


class _Event(msgspec.Struct):
    type: str
    object: _Watched


class _Traffic:
    """What one watch has sent."""

    def __init__(self) -> None:
        self.events, self.bytes, self.resumed, self.namespaces = 0, 0, -1, set[str]()
        self.synced = asyncio.Event()
        self._version = ""
        self._decoder = msgspec.json.Decoder(_Event)

    async def read(self, client: Client, resource: Resource, selector: str) -> None:
        """Count the events after the initial list. A watch may end at any time; it is resumed where it ended,
        so that no event is missing and none is counted twice."""
        common = {
            "allowWatchBookmarks": True,
            "labelSelector": "" if resource is SETS else f"{labels.MANAGED_BY}={labels.OPERATOR}",
            "shardSelector": selector,
        }
        first = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
        while True:
            self.resumed += 1
            parameters = common | ({"resourceVersion": self._version} if self._version else first)
            async with client.stream(resource, parameters, idle_timeout=300.0) as stream:
                async for lines in watch.line_batches(stream.chunks()):
                    for line in lines:
                        self._count(self._decoder.decode(line), len(line))

    def _count(self, event: _Event, size: int) -> None:
        if event.type == "BOOKMARK":
            self.synced.set()
        elif self.synced.is_set():
            self.events, self.bytes = self.events + 1, self.bytes + size
            self.namespaces.add(event.object.metadata.namespace)
        if self.synced.is_set():
            self._version = event.object.metadata.resource_version


async def measure() -> Result:
    """Both clusters, one after the other."""
    async with _cluster({GATE: True}) as (client, cluster):
        result = {"environment": environment(default_minor()), **await _with_gate(client, cluster)}
    async with _cluster({}) as (client, cluster):
        await new_namespace(client, NAMESPACES[0])
        result["without_gate"] = {
            half.selector: _seen(await _list(cluster, "/api/v1/configmaps", half.selector))
            for half in equal_ranges(2)
        }
    return result


@asynccontextmanager
async def _cluster(gates: dict[str, bool]) -> AsyncIterator[tuple[Client, LocalCluster]]:
    """A new cluster with the CRDs."""
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        state, reporter = StateDir(Path(folder) / "cluster"), ProgressReporter(Console(stderr=True))
        settings = ClusterSettings(
            kubernetes=default_minor(), nodes=20, gpus=8, shape="1x1x4x5", feature_gates=gates
        )
        cluster = await asyncio.to_thread(
            lifecycle.up, state, settings, lambda minor: binaries.find(minor, reporter), reporter
        )
        try:
            async with Client(config.load(cluster.kubeconfig)) as client:
                for crd in all_definitions():
                    await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd, as_type=Object)
                yield client, cluster
        finally:
            lifecycle.down(state)


async def _with_gate(client: Client, cluster: LocalCluster) -> Result:
    for namespace in NAMESPACES:
        await new_namespace(client, namespace)
    halves = [half.selector for half in equal_ranges(2)]
    pods = len(NAMESPACES) * REPLICAS * 2
    async with operator(cluster), _watches(client, ["", *halves]) as traffic:
        await _start_sets(client)
        await _quiet(traffic.values())
        watched = {
            kind.plural: [_summary(traffic[kind, selector]) for selector in ("", *halves)] for kind in KINDS
        }
        paths = [(kind.plural, kind.path()) for kind in (*KINDS, NODES)]
        listed = {
            plural: [_seen(await _list(cluster, path, selector)) for selector in ("", *halves)]
            for plural, path in paths
        }
    expected = [sorted(each for each in NAMESPACES if hash_of(each) >> 63 == half) for half in (0, 1)]
    return {"pods": pods, "expected_namespaces": expected, "watched": watched, "listed": listed}


@asynccontextmanager
async def _watches(
    client: Client, selectors: list[str]
) -> AsyncIterator[dict[tuple[Resource, str], _Traffic]]:
    """Watches of all kinds, with each selector."""
    traffic = {(kind, selector): _Traffic() for kind in KINDS for selector in selectors}
    tasks = [asyncio.create_task(found.read(client, *key)) for key, found in traffic.items()]
    try:
        for found in traffic.values():
            await found.synced.wait()
        yield traffic
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _quiet(traffic: Collection[_Traffic]) -> None:
    """Wait until no watch has sent an event for a while."""
    before = -1
    while before != (now := sum(each.events for each in traffic)):
        before = now
        await asyncio.sleep(SETTLING)


async def _start_sets(client: Client) -> None:
    """Create a set in each namespace; returns when all pods are ready."""
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        stopwatches = [await stack.enter_async_context(watching(client, each)) for each in NAMESPACES]
        for namespace in NAMESPACES:
            body = template("scale-test", REPLICAS)
            await client.create(SETS, body, namespace=namespace, as_type=Object)
        await asyncio.gather(*(each.ready(REPLICAS * 2, began) for each in stopwatches))


async def _list(cluster: LocalCluster, path: str, selector: str) -> _List:
    transport = HttpTransport(config.load(cluster.kubeconfig))
    try:
        reply = await transport.send(
            Request("GET", path + query({"shardSelector": selector}), "list", path, "")
        )
        return msgspec.json.decode(reply.body, type=_List)
    finally:
        await transport.close()


def _seen(found: _List) -> Result:
    """How many objects a list has, of which namespaces, and the selector that the server says it applied."""
    namespaces = sorted({each.metadata.get("namespace", "") for each in found.items})
    applied = found.metadata.get("shardInfo", {}).get("selector", "")
    return {"objects": len(found.items), "namespaces": namespaces, "applied": applied}


def _summary(found: _Traffic) -> Result:
    return {
        "events": found.events,
        "bytes": found.bytes,
        "resumed": found.resumed,
        "namespaces": sorted(found.namespaces),
    }
