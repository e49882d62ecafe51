"""A local cluster with an operator and the workloads of `grove demo`: a set whose gangs are in their racks,
and one of which a gang waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from grove.cli.commands.crd_install import install
from grove.cli.commands.demo import (
    GROUPS,
    NAME,
    NAMESPACE,
    SCALED_REPLICAS,
    SECOND,
    SETS,
    SHAPE,
    TOPOLOGIES,
    TOPOLOGY,
    TRAINING,
    WORKLOAD,
    manifest,
)
from grove.cli.views.live.set_watcher import SetWatcher
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.cluster.operator_process import ensure_operator
from grove.local.state_dir import StateDir
from grove.views.set_view import SetView
from tests.clusters import Clusters

PATIENCE = 120.0
NODES = 32


class Demo:
    """The cluster, with what the tests ask it for."""

    def __init__(self, cluster: LocalCluster, state: StateDir, client: Client, watcher: SetWatcher) -> None:
        self.cluster, self.state, self.client = cluster, state, client
        self._watcher = watcher

    async def deploy(self) -> None:
        """Create the topology and both sets as the demo does, and wait until each gang has its place or a
        reason. The second set needs whole racks: it comes when the first one has all of its pods."""
        await self.client.create(TOPOLOGIES, manifest(TOPOLOGY), as_type=Object)
        first = manifest(WORKLOAD)
        for group in first["spec"]["template"]["podCliqueScalingGroups"]:
            if group["name"] == "decode":
                group["replicas"] = SCALED_REPLICAS
        await self.client.create(SETS, first, namespace=NAMESPACE, as_type=Object)
        await self.until(lambda: self._is(NAME, "ready"))
        await self.client.create(SETS, manifest(TRAINING), namespace=NAMESPACE, as_type=Object)
        await self.until_deployed()

    async def until_deployed(self) -> None:
        """Wait until the first set is ready, and each gang of the second has its place or a reason."""
        try:
            await self.until(lambda: self._is(NAME, "ready") and self._is(SECOND, "settled"))
        except TimeoutError:
            raise AssertionError(f"not as deployed: {self.view(NAME)} {self.view(SECOND)}") from None

    def view(self, name: str) -> SetView:
        found = self._watcher.view(name)
        assert found is not None
        return found

    def _is(self, name: str, state: str) -> bool:
        return (view := self._watcher.view(name)) is not None and bool(getattr(view, state))

    def exists(self, name: str) -> bool:
        return self._watcher.view(name) is not None

    async def scale_group(self, group: str, replicas: int) -> None:
        await self.client.set_scale(GROUPS, group, replicas, namespace=NAMESPACE)

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait for a change of the objects after which this holds."""
        async with asyncio.timeout(PATIENCE):
            await self._watcher.until(done, NAME, _NoScreen())


class _NoScreen:
    def show(self, view: SetView) -> None: ...


@asynccontextmanager
async def demo_cluster(name: str = "dashboard") -> AsyncIterator[Demo]:
    """Start everything; stopped at the end."""
    clusters = Clusters()
    try:
        cluster = await clusters.start(name, nodes=NODES, shape=SHAPE, init_containers=True)
        async with Client(config.load(cluster.kubeconfig)) as client:
            await install(client)
            state = clusters.state(name)
            await ensure_operator(state, client)
            watcher = SetWatcher(NAMESPACE)
            async with watcher.on(client):
                demo = Demo(cluster, state, client, watcher)
                await demo.deploy()
                yield demo
    finally:
        await asyncio.to_thread(clusters.stop_all)


__all__ = ["NAME", "NAMESPACE", "SECOND", "Demo", "demo_cluster"]
