"""The status of gangs that the operator places, while pods are bound and nodes are relabelled; the free slots
of a topology."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY

from grove import timing
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES
from tests.cluster.operator.scheduling.test_placement import (
    PACKED,
    PLACING,
    RACK,
    account,
    bound,
    gpus,
    racks_of,
    topology,
)
from tests.cluster.operator.scheduling.test_topology import TOPOLOGIES
from tests.cluster.operator.support.harness import Operator, World, operating
from tests.cluster.operator.support.objects import GANGS, SETS
from tests.cluster.operator.support.workloads import workload

__all__ = ["account"]

DRIFT_LIMIT = 5.0
"""Seconds from a change of a label to the status that reports it."""


@asynccontextmanager
async def relabelled(client: Client, node: str, rack: str, was: str) -> AsyncIterator[None]:
    """A node with another rack label, until the block is left."""
    await client.patch(NODES, node, {"metadata": {"labels": {RACK: rack}}}, as_type=Object)
    try:
        yield
    finally:
        await client.patch(NODES, node, {"metadata": {"labels": {RACK: was}}}, as_type=Object)


def placement(world: World, gang: str) -> dict[str, Any]:
    found = world.find(GANGS, gang)
    status: dict[str, Any] = found.status if found is not None else {}
    return {**status.get("placement", {}), "score": status.get("placementScore")}


def statuses(operator: Operator, gang: str) -> list[dict[str, Any]]:
    """The statuses of a PodGang that were written, as merge patches."""
    requests = (call.request for call in operator.recorder.writes())
    return [
        msgspec.json.decode(request.body or b"")["status"]
        for request in requests
        if request.path.partition("?")[0].endswith(f"/podgangs/{gang}/status")
    ]


async def test_placement_is_written_with_scheduled(world: World, client: Client) -> None:
    racks = await racks_of(world)
    async with (
        topology(client),
        operating(world, topology_aware=True, backends=PLACING) as operator,
    ):
        body = workload("mine", gpus("worker", 3, 8))
        body["spec"]["template"]["topologyConstraint"] = PACKED
        await world.create(SETS, body)
        await world.until(lambda: world.all_ready() and len(bound(world)) == 3, "the gang")
        await operator.recorder.until_quiet()
        (rack,) = {racks[node] for node in bound(world).values()}
        assert placement(world, "mine-0") == {
            "topologyName": "local",
            "units": [{"name": "mine-0", "topologyKey": RACK, "domain": rack}],
            "requiredMet": True,
            "preferredMet": True,
            "score": 1,
        }
        (first,) = (each for each in statuses(operator, "mine-0") if "placement" in each)
        assert "Scheduled" in {each["type"] for each in first["conditions"] if each["status"] == "True"}


async def test_relabelled_node_shows_in_the_status(world: World, client: Client) -> None:
    racks = await racks_of(world)
    async with (
        topology(client),
        operating(world, topology_aware=True, backends=PLACING) as operator,
    ):
        body = workload("mine", gpus("worker", 3, 8))
        body["spec"]["template"]["topologyConstraint"] = PACKED
        await world.create(SETS, body)
        await world.until(lambda: world.all_ready() and placement(world, "mine-0").get("requiredMet"))
        await operator.recorder.until_quiet()
        node, before = next(iter(bound(world).values())), len(statuses(operator, "mine-0"))
        async with relabelled(client, node, "elsewhere", racks[node]):
            await world.until(
                lambda: placement(world, "mine-0")["requiredMet"] is False, "drift", DRIFT_LIMIT
            )
            assert placement(world, "mine-0")["units"][0]["domain"] == racks[node]
            await operator.recorder.until_quiet()
        await world.until(lambda: placement(world, "mine-0")["requiredMet"], "no drift", DRIFT_LIMIT)
        await operator.recorder.until_quiet()
        assert len(statuses(operator, "mine-0")) == before + 2
        assert len(bound(world)) == 3


async def test_free_slots_of_topology_follow_bound_pods(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "FREE_SLOTS_INTERVAL", 2.0)
    monkeypatch.setattr(timing, "TOPOLOGY_USAGE_DELAY", 0.5)
    await world.watch(TOPOLOGIES)

    def slots(level: str) -> dict[int, int]:
        found = next((each for each in world.all(TOPOLOGIES) if each.name == "local"), None)
        levels = found.status.get("levels", ()) if found is not None else ()
        counted = next((each.get("freeSlots", ()) for each in levels if each["domain"] == level), ())
        return {each["gpus"]: each["count"] for each in counted}

    async with (
        topology(client),
        operating(world, topology_aware=True, backends=PLACING) as operator,
    ):
        await world.until(lambda: slots("rack") == {1: 128, 8: 16, 16: 8, 32: 4, 64: 0}, "free racks")
        assert slots("block") == {1: 128, 8: 16, 16: 8, 32: 4, 64: 2}
        await world.create(SETS, workload("mine", gpus("worker", 2, 6)))
        await world.until(lambda: slots("host") == {1: 116, 8: 14, 16: 0, 32: 0, 64: 0}, "two hosts in use")
        await operator.recorder.until_quiet()
        labels = {"topology": "local", "level": "host", "gpus": "8"}
        assert REGISTRY.get_sample_value("grove_topology_free_slots", labels) == 14
        await client.delete(TOPOLOGIES, "local", as_type=Object)
        await world.until(lambda: not world.all(TOPOLOGIES), "the deletion")
        await operator.recorder.until_quiet()
        assert REGISTRY.get_sample_value("grove_topology_free_slots", labels) is None
