"""Topology constraints of DynamoGraphDeployments where the operator places gangs: they hold for every
replica, also for those beyond the minimum."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from grove.api.configuration.types import (
    Dynamo,
    OperatorConfiguration,
    Scheduler,
    SchedulerProfile,
    TopologyAwareScheduling,
)
from grove.dynamo.admission.defaults import default_graph
from grove.kube.client.client import JSON, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PODS
from grove.operator.caches.dynamo import GRAPHS
from grove.operator.dynamo_settings import DynamoSettings
from grove.schedulers.registry import backends
from tests.cluster.operator.dynamo.graph_status import condition, ready
from tests.cluster.operator.scheduling.test_placement import LEVELS, topology
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import AnyObject
from tests.cluster.operator.support.world import World
from tests.dynamo.builders import component, deployment, engine

PLACING = Scheduler((SchedulerProfile("default-scheduler", {"placement": "All"}),))
CONFIGURATION = OperatorConfiguration(
    dynamo=Dynamo(enabled=True),
    topology_aware_scheduling=TopologyAwareScheduling(enabled=True),
    scheduler=PLACING,
)
WHOLE_NODE = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
IN_ONE_BLOCK = {"topologyConstraint": {"packDomain": "block"}}


@asynccontextmanager
async def placing(dynamo: World) -> AsyncIterator[None]:
    """An operator that places gangs, and the topology of the nodes."""
    in_use = backends(PLACING)
    layer = DynamoSettings.of(CONFIGURATION, in_use)
    async with (
        topology(dynamo.client),
        operating(dynamo, topology_aware=True, dynamo=layer, backends=in_use),
    ):
        yield


async def blocks_of_nodes(client: Client) -> dict[str, str]:
    found = (await client.list(NODES, as_type=Object)).items
    return {node.metadata.name: node.metadata.labels[LEVELS["block"]] for node in found}


async def use_nodes(dynamo: World, *nodes: str) -> None:
    """Run a pod of others on each node, with all of its GPUs."""
    containers = [{"name": "main", "image": "other:1", **WHOLE_NODE}]
    for node in nodes:
        await dynamo.create(
            PODS, {"metadata": {"name": node}, "spec": {"nodeName": node, "containers": containers}}
        )


def bound(dynamo: World, name: str) -> list[AnyObject]:
    return [pod for pod in dynamo.pods(part_of=name) if pod.spec.get("nodeName")]


def replicas(index: int, count: int) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": f"/spec/components/{index}/replicas", "value": count}]


async def test_replicas_beyond_the_minimum_share_the_domain(dynamo: World, client: Client) -> None:
    """A block has 8 nodes, and two blocks are free: what does not fit into the first one waits."""
    blocks = await blocks_of_nodes(client)

    def used() -> set[str]:
        return {blocks[pod.spec["nodeName"]] for pod in bound(dynamo, "packed")}

    def in_one_block() -> None:
        assert len(used()) <= 1, {pod.name: pod.spec["nodeName"] for pod in bound(dynamo, "packed")}

    def waiting() -> str:
        found: str = condition(dynamo.get(GRAPHS, "packed"), "grove.io/Waiting").get("message", "")
        return found

    body = deployment(
        component("Web", "frontend"),
        component("Prefill", "prefill", WHOLE_NODE, replicas=2),
        engine(["--tensor-parallel-size", "16"], 8, name="Decode", replicas=3),
        **IN_ONE_BLOCK,
    )
    body["metadata"] = {"name": "packed"}
    dynamo.always(in_one_block)
    async with placing(dynamo):
        await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await dynamo.until(lambda: ready(dynamo, "packed"), "all of it in one block")
        assert len(bound(dynamo, "packed")) == 9
        for index, count, why in ((1, 2, "for 1 pod beyond the minimum"), (2, 3, "needs 16 nvidia.com/gpu")):
            await dynamo.patch(GRAPHS, "packed", replicas(index, count + 1), kind=JSON)
            await dynamo.until(lambda why=why: why in waiting(), why)
            assert len(bound(dynamo, "packed")) == 9
            await dynamo.patch(GRAPHS, "packed", replicas(index, count), kind=JSON)


async def test_block_with_room_for_all_replicas_is_chosen(dynamo: World, client: Client) -> None:
    """The fuller block has room for the minimum, and not for the third replica."""
    blocks = await blocks_of_nodes(client)
    fuller = sorted(node for node, block in blocks.items() if block == min(blocks.values()))
    await use_nodes(dynamo, *fuller[2:])
    body = deployment(component("Decode", "decode", WHOLE_NODE, replicas=3), **IN_ONE_BLOCK)
    body["metadata"] = {"name": "roomy"}
    async with placing(dynamo):
        await dynamo.create(GRAPHS, default_graph(body, creating=True))
        await dynamo.until(lambda: ready(dynamo, "roomy"), "all replicas")
        used = {blocks[pod.spec["nodeName"]] for pod in bound(dynamo, "roomy")}
        assert used == {max(blocks.values())}
