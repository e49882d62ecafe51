"""Node pools that share the label of a wide level: a set goes to nodes of its own topology."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PODS
from tests.chart import Account
from tests.cluster.operator.placement.extra_nodes import ROOM, SLOT, Room
from tests.cluster.operator.scheduling.test_placement import PLACING
from tests.cluster.operator.scheduling.test_topology import TOPOLOGIES
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, SETS
from tests.cluster.operator.support.workloads import clique, workload

ZONE, BLOCK, RACK = (f"pools.example.com/{level}" for level in ("zone", "block", "rack"))
GB200 = "pools.example.com/gb200-rack"


@pytest.fixture
def account(placing_account: Account) -> Account:
    """With the rights that placement needs."""
    return placing_account


@asynccontextmanager
async def two_pools(client: Client, name: str) -> AsyncIterator[tuple[list[str], list[str]]]:
    """Two nodes with the labels of the topology `name`, and three of another pool in the same zone; one slot
    each."""
    levels = [{"domain": key.rpartition("/")[2], "key": key} for key in (ZONE, BLOCK, RACK)]
    body = {"apiVersion": TOPOLOGIES.api_version, "kind": TOPOLOGIES.kind, "metadata": {"name": name}}
    await client.create(TOPOLOGIES, {**body, "spec": {"levels": levels}}, as_type=Object)
    room = Room(client, name)
    try:
        await room.grow(3, {ZONE: name, GB200: "g1"})
        await room.grow(2, {ZONE: name, BLOCK: "b1", RACK: "r1"})
        yield room.nodes[3:], room.nodes[:3]
    finally:
        await client.delete(TOPOLOGIES, name, as_type=Object)
        for node in room.nodes:
            await client.delete(NODES, node, as_type=Object)


def a_set(name: str, pods: int, topology: str, **pod: Any) -> dict[str, Any]:
    """A gang of pods with a slot each, all in one zone of the topology."""
    container = {"name": "main", "image": "model:1", "resources": {"limits": {SLOT: "1"}}}
    spec = {"containers": [container], "nodeSelector": {ROOM: topology}, **pod}
    body = workload(name, clique("worker", pods, pod=spec))
    body["spec"]["template"]["topologyConstraint"] = {"topologyName": topology, "packDomain": "zone"}
    return body


def nodes_of(world: World, name: str) -> list[str]:
    return sorted(pod.spec["nodeName"] for pod in world.pods(part_of=name) if pod.spec.get("nodeName"))


def message(world: World, gang: str) -> str:
    found = world.find(GANGS, gang)
    conditions = found.status.get("conditions", ()) if found is not None else ()
    return next((each["message"] for each in conditions if each["type"] == "Scheduled"), "")


async def test_set_stays_in_the_node_pool_of_its_topology(world: World, client: Client) -> None:
    async with (
        two_pools(client, world.namespace) as (own, others),
        operating(world, topology_aware=True, backends=PLACING),
    ):
        await world.create(SETS, a_set("mine", 2, world.namespace))
        await world.until(lambda: len(nodes_of(world, "mine")) == 2, "nodes for both pods")
        assert nodes_of(world, "mine") == own
        await world.until(
            lambda: (world.get(GANGS, "mine-0").status.get("placement") or {}).get("requiredMet"), "its place"
        )
        await world.create(SETS, a_set("second", 2, world.namespace))
        await world.until(lambda: f"without a matching {BLOCK}" in message(world, "second-0"), "the reason")
        assert nodes_of(world, "second") == []
        await world.delete(SETS, "mine")
        await world.until(lambda: nodes_of(world, "second") == own, "the nodes of its topology")
        assert len(others) == 3


async def test_pod_is_confined_to_its_pool_by_node_affinity(world: World, client: Client) -> None:
    """The scheduler binds the pods: it has to know which nodes of the zone belong to the topology."""
    async with (
        two_pools(client, world.namespace) as (own, _),
        operating(world, topology_aware=True, backends=PLACING),
    ):
        zone = {"key": ZONE, "operator": "In", "values": [world.namespace]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        await world.create(SETS, a_set("mine", 2, world.namespace, affinity=affinity))
        await world.until(lambda: nodes_of(world, "mine") == own, "both pods")
        for pod in world.all(PODS):
            (term,) = pod.spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
                "nodeSelectorTerms"
            ]
            present = [{"key": key, "operator": "Exists"} for key in (BLOCK, RACK)]
            assert term["matchExpressions"] == [zone, *present]
            assert pod.spec["nodeSelector"] == {ROOM: world.namespace, ZONE: world.namespace}
