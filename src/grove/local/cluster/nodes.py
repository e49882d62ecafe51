"""The nodes of a local cluster: created from its shape, simulated by KWOK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from grove.api.naming.external_keys import NVIDIA_GPU
from grove.api.types.kubernetes_objects import Node
from grove.kube.auth import config
from grove.kube.cache.cache import Cache, T
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CONFIG_MAPS, NODES, SERVICE_ACCOUNTS
from grove.kube.errors import AlreadyExists
from grove.local.cluster.cluster_shape import node_manifests, parse_shape
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterSettings

_IN_FLIGHT = 32
_MARKER = "grove-local-cluster"
"""The ConfigMap in kube-public by which the chart recognises a cluster whose nodes run no containers."""


def is_ready(node: Node) -> bool:
    return any(fact.type == "Ready" and fact.status == "True" for fact in node.status.conditions)


def gpus_of(node: Node) -> int:
    return int(node.status.allocatable.get(NVIDIA_GPU, 0))


async def ensure_nodes(kubeconfig: Path, settings: ClusterSettings, reporter: ProgressReporter) -> None:
    """Create the missing nodes, mark the cluster as a local one, and wait until pods can be created and
    scheduled."""
    manifests = node_manifests(parse_shape(settings.shape), settings.nodes, settings.gpus)
    async with Client(config.load(kubeconfig)) as client:
        await _create(client, manifests)
        marker = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _MARKER}}
        with suppress(AlreadyExists):
            await client.create(CONFIG_MAPS, marker, namespace="kube-public", as_type=Object)
        nodes = Cache(NODES, Node)
        await _until(client, nodes, lambda: all(map(is_ready, nodes)))
        # A pod is rejected as long as its namespace has no default service account.
        accounts = Cache(SERVICE_ACCOUNTS, Object, namespace="default")
        await _until(client, accounts, lambda: accounts.get("default", "default") is not None)
    reporter.say(f"{settings.nodes} nodes with {settings.gpus} GPUs each, shape {settings.shape}")


async def read_nodes(kubeconfig: Path) -> list[Node]:
    async with Client(config.load(kubeconfig)) as client:
        return (await client.list(NODES, as_type=Node)).items


async def _create(client: Client, manifests: Iterable[dict[str, Any]]) -> None:
    slots = asyncio.Semaphore(_IN_FLIGHT)
    existing = {node.metadata.name for node in (await client.list(NODES, as_type=Node)).items}

    async def create(manifest: dict[str, Any]) -> None:
        async with slots:
            try:
                await client.create(NODES, manifest, as_type=Node)
            except AlreadyExists:
                return

    async with asyncio.TaskGroup() as group:
        for manifest in manifests:
            if manifest["metadata"]["name"] not in existing:
                group.create_task(create(manifest))


async def _until(client: Client, cache: Cache[T], satisfied: Callable[[], bool]) -> None:
    """Watch until the condition holds for the cached objects; it is evaluated at each watch event."""
    changed = asyncio.Event()
    cache.subscribe(lambda _old, _new: changed.set())
    watching = asyncio.create_task(Reflector(client, cache).run())
    try:
        await cache.synced.wait()
        while not satisfied():
            changed.clear()
            await changed.wait()
    finally:
        watching.cancel()
        await asyncio.wait([watching])
