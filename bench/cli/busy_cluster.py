"""A local cluster of 500 nodes with 5,000 running pods, and a set that waits for a rack."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.core.pod_timing import watching
from bench.core.setup import SETS, new_namespace, operator, template
from grove.api.crds.crd import all_definitions
from grove.api.types.clustertopology import ClusterTopology
from grove.cluster_state.described import LEVELS
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS, PODS
from grove.local.build import binaries
from grove.local.build.versions import default_minor
from grove.local.cluster import lifecycle
from grove.local.cluster.cluster_shape import node_manifests, parse_shape
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterSettings, StateDir
from grove.operator.caches.resources import resource_of

SHAPE, NODES = "1x5x20x5", 500
REPLICAS, PODS_EACH, FOREIGN = 250, 2, 4_500
NAMESPACE, WAITING, RUNNING = "bench", "contended", "scale-test"
IN_FLIGHT = 32
TOPOLOGIES = resource_of(ClusterTopology.KIND)


@asynccontextmanager
async def busy_cluster() -> AsyncIterator[LocalCluster]:
    """The cluster, while the operator runs."""
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        state = StateDir(Path(folder) / "cluster")
        settings = ClusterSettings(kubernetes=default_minor(), nodes=NODES, gpus=8, shape=SHAPE)
        reporter = ProgressReporter(Console(stderr=True))
        cluster = await asyncio.to_thread(
            lifecycle.up, state, settings, lambda minor: binaries.find(minor, reporter), reporter
        )
        try:
            async with Client(config.load(cluster.kubeconfig)) as client:
                await _install(client)
                async with operator(cluster, holdAfter="1h"):
                    await _fill(client)
                    yield cluster
        finally:
            lifecycle.down(state)


async def _install(client: Client) -> None:
    for crd in all_definitions():
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd, as_type=Object)


async def _fill(client: Client) -> None:
    levels = [{"domain": level, "key": key} for level, key in LEVELS.items()]
    kind = {"apiVersion": TOPOLOGIES.api_version, "kind": TOPOLOGIES.kind}
    topology = {**kind, "metadata": {"name": "local"}, "spec": {"levels": levels}}
    await client.create(TOPOLOGIES, topology, as_type=Object)
    for namespace in (NAMESPACE, "others"):
        await new_namespace(client, namespace)
    async with watching(client, "others") as others, watching(client, NAMESPACE) as ours:
        began = asyncio.get_running_loop().time()
        await _all(client.create(PODS, each, namespace="others", as_type=Object) for each in _pods())
        for name, replicas in ((RUNNING, REPLICAS), (WAITING, 1)):
            await client.create(SETS, template(name, replicas), namespace=NAMESPACE, as_type=Object)
        await others.created(FOREIGN, began)
        await ours.ready(REPLICAS * PODS_EACH, began)


def _pods() -> Iterator[dict[str, Any]]:
    """Bound pods of others, nine on each node, one of them with a GPU: no rack is free as a whole."""
    names = [each["metadata"]["name"] for each in node_manifests(parse_shape(SHAPE), NODES, 8)]
    for i, node in zip(range(FOREIGN), itertools.cycle(names), strict=False):
        limits = {"cpu": "100m"} | ({"nvidia.com/gpu": "1"} if i < NODES else {})
        container = {"name": "main", "image": "main", "resources": {"limits": limits}}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"other-{i}"},
            "spec": {"nodeName": node, "containers": [container]},
        }


async def _all(requests: Iterable[Coroutine[Any, Any, object]]) -> None:
    waiting = iter(requests)

    async def worker() -> None:
        for request in waiting:
            await request

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
