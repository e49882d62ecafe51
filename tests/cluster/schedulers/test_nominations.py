"""What the placement of gangs relies on, on each version of Kubernetes: a gated pod with a nominated node
holds its requests there against pods of the same or a lower priority. Plain pods, no operator.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from grove.kube.auth import config
from grove.kube.client.client import JSON, Client
from grove.kube.client.resource import PODS
from grove.local.build.versions import default_minor
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.operator.placement.storm import HIGH, LOW, create_priorities, foreign_pod
from tests.cluster.operator.support.objects import AnyObject
from tests.cluster.operator.support.world import World
from tests.cluster.scheduler_process import restart_scheduler
from tests.clusters import Clusters
from tests.namespaces import make_namespace

pytestmark = pytest.mark.cluster

GATE = "example.com/wait"
HOST = "kubernetes.io/hostname"
KEPT_BY_RESTART = {"1.36": False}
"""By minor version of Kubernetes, whether a nomination outlives a restart of the scheduler: from 1.37 on."""


class Pods:
    """A namespace with pods of 8 GPUs: each needs a whole node."""

    def __init__(self, world: World, nodes: list[str]) -> None:
        self.world, self.nodes = world, nodes

    async def create(self, name: str, node: str = "", *, gated: bool = False, priority: str = "") -> None:
        spec: dict[str, Any] = {"schedulingGates": [{"name": GATE}]} if gated else {}
        if node:
            spec["nodeSelector"] = {HOST: node}
        await self.world.create(PODS, foreign_pod(name, 8, priority, **spec))

    async def nominate(self, name: str, node: str | None) -> None:
        body = {"status": {"nominatedNodeName": node}}
        await self.world.patch(PODS, name, body, subresource="status")

    async def create_nominated(self, name: str, node: str) -> None:
        """Create a gated pod that holds a node. The scheduler knows of it: it reports the gate first."""
        await self.create(name, gated=True)
        await self.nominate(name, node)

    async def release(self, name: str, node: str) -> None:
        """Remove the gate and add a node selector in one patch."""
        body = [
            {"op": "remove", "path": "/spec/schedulingGates"},
            {"op": "add", "path": "/spec/nodeSelector", "value": {HOST: node}},
        ]
        await self.world.patch(PODS, name, body, kind=JSON)

    async def delete(self, *names: str) -> None:
        for name in names:
            await self.world.delete(PODS, name, grace_seconds=0)

    async def until_bound(self, name: str, *nodes: str) -> None:
        await self.world.until(lambda: self._get(name).spec.get("nodeName"), f"{name} bound", 30)
        assert self._get(name).spec["nodeName"] in nodes

    async def until_unschedulable(self, name: str) -> None:
        await self.world.until(lambda: _reason(self._get(name)) == "Unschedulable", f"{name} refused", 30)
        assert not self._get(name).spec.get("nodeName")

    def nomination(self, name: str) -> str:
        return str(self._get(name).status.get("nominatedNodeName", ""))

    def _get(self, name: str) -> AnyObject:
        return self.world.get(PODS, name)


def _reason(pod: AnyObject) -> str:
    conditions = pod.status.get("conditions") or ()
    return next((each.get("reason", "") for each in conditions if each["type"] == "PodScheduled"), "")


@pytest.fixture(scope="module")
def own_cluster() -> Any:
    """Two nodes, for this module."""
    own = Clusters()
    try:
        yield own.start_now("nominations", nodes=2, shape="1x1x1x2")
    finally:
        own.stop_all()


@pytest.fixture
async def pods(own_cluster: LocalCluster, request: pytest.FixtureRequest) -> AsyncIterator[Pods]:
    """A namespace on the cluster with two empty nodes."""
    connection = config.load(own_cluster.kubeconfig)
    async with Client(connection) as client:
        await create_priorities(client)
        name = f"test-{abs(hash(request.node.name))}"
        await make_namespace(client, name)
        world = World(client, connection, name)
        await world.watch(PODS)
        try:
            yield Pods(world, ["z0-b0-r0-h0", "z0-b0-r0-h1"])
        finally:
            for pod in world.all(PODS):
                await world.delete(PODS, pod.name, grace_seconds=0)
            await world.until(lambda: not world.all(PODS))
            await world.close()


async def test_gate_alone_holds_nothing(pods: Pods) -> None:
    node, _ = pods.nodes
    await pods.create("gated", node, gated=True)
    await pods.create("rival", node)
    await pods.until_bound("rival", node)


@pytest.mark.parametrize("priority", ["", LOW])
async def test_nomination_holds_node_until_released(pods: Pods, priority: str) -> None:
    """Against pods of the same and of a lower priority; another node is free for them."""
    node, other = pods.nodes
    await pods.create_nominated("ours", node)
    await pods.create("rival", node, priority=priority)
    await pods.until_unschedulable("rival")
    await pods.create("free", priority=priority)
    await pods.until_bound("free", other)
    await pods.release("ours", node)
    await pods.until_bound("ours", node)


async def test_higher_priority_ignores_nomination(pods: Pods) -> None:
    node, _ = pods.nodes
    await pods.create_nominated("ours", node)
    await pods.create("urgent", node, priority=HIGH)
    await pods.until_bound("urgent", node)
    assert pods.nomination("ours") == node, "the field stays set"


async def test_moved_nomination_frees_the_first_node(pods: Pods) -> None:
    node, other = pods.nodes
    await pods.create_nominated("ours", node)
    await pods.create("rival", node)
    await pods.until_unschedulable("rival")
    await pods.nominate("ours", other)
    await pods.until_bound("rival", node)
    await pods.create("second", other)
    await pods.until_unschedulable("second")


async def test_removed_nomination_frees_the_node(pods: Pods) -> None:
    node, _ = pods.nodes
    await pods.create_nominated("ours", node)
    await pods.create("rival", node)
    await pods.until_unschedulable("rival")
    await pods.nominate("ours", None)
    await pods.until_bound("rival", node)


async def test_nomination_on_full_node_keeps_waiting_rivals_out(pods: Pods) -> None:
    node, _ = pods.nodes
    await pods.create("first", node)
    await pods.until_bound("first", node)
    await pods.create("rival", node)
    await pods.until_unschedulable("rival")
    await pods.create_nominated("ours", node)
    await pods.delete("first")
    await pods.create("second", node)
    await pods.until_unschedulable("second")
    await pods.until_unschedulable("rival")
    await pods.release("ours", node)
    await pods.until_bound("ours", node)


async def test_scheduler_clears_nomination_it_cannot_meet(pods: Pods) -> None:
    """A released pod that turns out to be unschedulable."""
    node, _ = pods.nodes
    await pods.create("first", node)
    await pods.until_bound("first", node)
    await pods.create_nominated("ours", node)
    await pods.release("ours", node)
    await pods.until_unschedulable("ours")
    await pods.world.until(lambda: not pods.nomination("ours"), "the nomination cleared")


async def test_scheduler_restart_keeps_nominations_from_1_37(pods: Pods, own_cluster: LocalCluster) -> None:
    node, _ = pods.nodes
    await pods.create_nominated("ours", node)
    await restart_scheduler(own_cluster)
    await pods.create("rival", node)
    if KEPT_BY_RESTART.get(default_minor(), True):
        await pods.until_unschedulable("rival")
        return
    await pods.until_bound("rival", node)
    await pods.delete("rival")
    await pods.world.patch(PODS, "ours", {"metadata": {"labels": {"touched": "yes"}}})
    await asyncio.sleep(0.5)  # no event says that the scheduler has seen the change
    await pods.create("second", node)
    await pods.until_unschedulable("second")
