"""Fallbacks of a topology constraint, on the unmodified scheduler: taken after their time, kept once pods
have nodes, and the status follows the labels of the topology that was chosen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PODS
from tests.cluster.operator.placement.extra_nodes import Room, room
from tests.cluster.operator.scheduling.test_placement import account, bound
from tests.cluster.operator.scheduling.test_placement_devices import PATIENT, condition
from tests.cluster.operator.scheduling.test_placement_status import DRIFT_LIMIT, placement
from tests.cluster.operator.scheduling.test_topology import TOPOLOGIES
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS, gated
from tests.cluster.operator.support.workloads import clique, workload

__all__ = ["account"]

RACK, ROW = "example.com/fallback-rack", "example.com/fallback-row"
AFTER = 3.0


@asynccontextmanager
async def topology(client: Client, name: str, key: str) -> AsyncIterator[None]:
    """A topology whose only level, `rack`, is this label."""
    body = {
        "apiVersion": TOPOLOGIES.api_version,
        "kind": TOPOLOGIES.kind,
        "metadata": {"name": name},
        "spec": {"levels": [{"domain": "rack", "key": key}]},
    }
    await client.create(TOPOLOGIES, body, as_type=Object)
    try:
        yield
    finally:
        await client.delete(TOPOLOGIES, name, as_type=Object)


async def relabel(client: Client, node: str, key: str, value: str) -> None:
    await client.patch(NODES, node, {"metadata": {"labels": {key: value}}}, as_type=Object)


def a_gang(nodes: Room, pods: int) -> dict[str, Any]:
    """A gang that must be in one rack, or after a while in one row."""
    body = nodes.confine(workload("gang", clique("worker", pods)))
    body["spec"]["template"]["topologyConstraint"] = {
        "topologyName": f"{nodes.name}-racks",
        "packDomain": "rack",
        "fallbacks": [{"topologyName": f"{nodes.name}-rows", "after": f"{AFTER:g}s"}],
    }
    return body


@asynccontextmanager
async def two_racks_in_a_row(world: World, client: Client) -> AsyncIterator[Room]:
    """Two racks of two nodes each, in one row, with a slot for one pod on each node; and an operator."""
    name = world.namespace
    async with (
        room(client, name) as nodes,
        topology(client, f"{name}-racks", RACK),
        topology(client, f"{name}-rows", ROW),
        operating(world, topology_aware=True, backends=PATIENT),
    ):
        for rack in ("a", "b"):
            await nodes.grow(2, {RACK: f"{name}-{rack}", ROW: name})
        yield nodes


async def test_fallback_is_taken_after_its_time_and_shown(world: World, client: Client) -> None:
    gang = f"{world.namespace}-0"
    async with two_racks_in_a_row(world, client) as nodes:
        started = asyncio.get_running_loop().time()
        await world.create(SETS, a_gang(nodes, 3))
        await world.until(lambda: "no place" in condition(world, gang, "Scheduled").get("message", ""))
        await world.until(lambda: len(bound(world)) == 3, "the gang, by its fallback")
        assert asyncio.get_running_loop().time() - started >= AFTER
        await world.until(lambda: placement(world, gang).get("requiredMet"), "its placement")
        found = placement(world, gang)
        assert (found["topologyName"], found["fallback"]) == (f"{nodes.name}-rows", 0)
        assert found["units"] == [{"name": gang, "topologyKey": ROW, "domain": nodes.name}]

        used = next(iter(bound(world).values()))
        await relabel(client, used, RACK, "elsewhere")
        await relabel(client, used, ROW, "elsewhere")
        await world.until(lambda: not placement(world, gang)["requiredMet"], "drift", DRIFT_LIMIT)
        await relabel(client, used, ROW, nodes.name)
        await world.until(lambda: placement(world, gang)["requiredMet"], "no drift", DRIFT_LIMIT)
        assert placement(world, gang)["fallback"] == 0


async def test_gang_with_nodes_takes_no_fallback(world: World, client: Client) -> None:
    """The other rack and the row have room for the replacement of a lost pod, its own rack does not."""
    gang = f"{world.namespace}-0"
    async with two_racks_in_a_row(world, client) as nodes:
        await world.create(SETS, a_gang(nodes, 2))
        await world.until(lambda: world.all_ready() and len(bound(world)) == 2, "the gang, in one rack")
        lost, node = next(iter(bound(world).items()))
        await client.patch(NODES, node, {"spec": {"unschedulable": True}}, as_type=Object)
        await world.delete(PODS, lost)
        await world.until(lambda: "no place" in condition(world, gang, "Scheduled").get("message", ""))
        await asyncio.sleep(AFTER + 1)  # nothing must happen
        assert sorted(map(gated, world.pods())) == [False, True]
        assert "fallback" not in placement(world, gang)
        await client.patch(NODES, node, {"spec": {"unschedulable": False}}, as_type=Object)
        await world.until(lambda: len(bound(world)) == 2, "the replacement, in the same rack")
