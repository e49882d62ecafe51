"""A new control plane for a run, so that no run pays for what another has left in etcd and in caches."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from rich.console import Console

from bench.core.setup import CLIQUES
from grove.api.crds.crd import all_definitions
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS
from grove.kube.errors import NotFound
from grove.local.build import binaries
from grove.local.build.versions import default_minor
from grove.local.cluster import lifecycle
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterSettings, StateDir

KUBERNETES = default_minor()
_PATIENCE = 120.0  # seconds; the garbage collector looks for new kinds every 30 s


class ControlPlane(NamedTuple):
    """A cluster without an operator, and a client of it."""

    client: Client
    cluster: LocalCluster


@asynccontextmanager
async def control_plane(nodes: int, shape: str) -> AsyncIterator[ControlPlane]:
    """A control plane without CRDs; stopped and removed afterwards."""
    reporter = ProgressReporter(Console(stderr=True))
    settings = ClusterSettings(kubernetes=KUBERNETES, nodes=nodes, gpus=8, shape=shape, audit=True)
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        state = StateDir(Path(folder) / "cluster")
        cluster = await asyncio.to_thread(
            lifecycle.up, state, settings, lambda minor: binaries.find(minor, reporter), reporter
        )
        try:
            async with Client(config.load(cluster.kubeconfig)) as client:
                yield ControlPlane(client, cluster)
        finally:
            lifecycle.down(state)


async def install_crds(client: Client) -> None:
    """Install our CRDs, and wait until the whole control plane knows them."""
    for crd in all_definitions():
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd, as_type=Object)
    await until_garbage_collected(client)


async def until_garbage_collected(client: Client) -> None:
    """Wait until the garbage collector knows our kinds. It watches them from then on, which takes CPU: the
    first run and short runs would be over before. A ConfigMap whose owner does not exist is deleted once the
    owner's kind is known; each is retried later and later, hence a new one every second."""
    async with asyncio.timeout(_PATIENCE):
        for number in range(int(_PATIENCE)):
            name = f"garbage-{number}"
            owner = {"apiVersion": CLIQUES.api_version, "kind": CLIQUES.kind, "name": "absent"}
            metadata = {"name": name, "ownerReferences": [{**owner, "uid": str(uuid4())}]}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            await client.create(CONFIG_MAPS, body, namespace="default", as_type=Object)
            await asyncio.sleep(1)
            try:
                await client.get(CONFIG_MAPS, name, namespace="default", as_type=Object)
            except NotFound:
                return
