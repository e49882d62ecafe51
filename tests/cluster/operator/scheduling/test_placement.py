"""Placement by the operator on the unmodified scheduler with all feature gates at their defaults."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.naming import labels
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PODS
from grove.kube.errors import NotFound
from grove.schedulers.registry import SchedulerBackends, backends
from tests.chart import Account
from tests.cluster.operator.scheduling.test_topology import TOPOLOGIES
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, SETS, gated
from tests.cluster.operator.support.workloads import clique, workload

PLACING = backends(Scheduler((SchedulerProfile("default-scheduler", {"placement": "All"}),)))
LEVELS = {level: f"topology.kubernetes.io/{level}" for level in ("zone", "block", "rack")}
LEVELS["host"] = "kubernetes.io/hostname"
RACK = LEVELS["rack"]
PACKED = {"topologyName": "local", "pack": {"required": "rack"}}


@asynccontextmanager
async def topology(client: Client, name: str = "local") -> AsyncIterator[None]:
    """The topology of the local cluster, until the block is left."""
    levels = [{"domain": domain, "key": key} for domain, key in LEVELS.items()]
    body = {
        "apiVersion": TOPOLOGIES.api_version,
        "kind": TOPOLOGIES.kind,
        "metadata": {"name": name},
        "spec": {"levels": levels},
    }
    await client.create(TOPOLOGIES, body, as_type=Object)
    try:
        yield
    finally:
        with suppress(NotFound):
            await client.delete(TOPOLOGIES, name, as_type=Object)


@pytest.fixture
def account(placing_account: Account) -> Account:
    """With the rights that placement needs."""
    return placing_account


def gpus(name: str, count: int, amount: int, **options: Any) -> dict[str, Any]:
    """A clique of pods with this many GPUs; a node has 8, a rack 4 nodes."""
    resources = {"limits": {"nvidia.com/gpu": str(amount)}}
    container = {"name": "main", "image": "model:1", "resources": resources}
    return clique(name, count, pod={"containers": [container]}, **options)


def bound(world: World) -> dict[str, str]:
    return {pod.name: pod.spec["nodeName"] for pod in world.pods() if pod.spec.get("nodeName")}


async def racks_of(world: World) -> dict[str, str]:
    nodes = (await world.client.list(NODES, as_type=Object)).items
    return {node.metadata.name: node.metadata.labels[RACK] for node in nodes}


def by_gang(world: World, racks: dict[str, str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for pod in world.pods():
        if node := pod.spec.get("nodeName"):
            found.setdefault(pod.labels[labels.GANG], set()).add(racks[node])
    return found


async def test_each_gang_is_bound_in_one_rack(world: World, client: Client) -> None:
    racks = await racks_of(world)
    async with (
        topology(client),
        operating(world, topology_aware=True, backends=PLACING) as operator,
    ):
        body = workload("mine", gpus("worker", 3, 8), replicas=4)
        body["spec"]["template"]["topologyConstraint"] = PACKED
        await world.create(SETS, body)
        await world.until(lambda: len(bound(world)) == 12, "all gangs")
        await operator.recorder.until_quiet()
        found = by_gang(world, racks)
        assert len(found) == 4
        assert sorted(rack for each in found.values() for rack in each) == sorted(set(racks.values()))
        assert not any(map(gated, world.pods()))


async def test_gang_that_does_not_fit_waits_whole_with_the_reason(world: World, client: Client) -> None:
    async with (
        topology(client),
        operating(world, topology_aware=True, backends=PLACING),
    ):
        body = workload("large", gpus("worker", 5, 8))
        body["spec"]["template"]["topologyConstraint"] = PACKED
        await world.create(SETS, body)
        await world.until(lambda: len(world.pods()) == 5 and all(map(gated, world.pods())), "gated pods")

        def message() -> str:
            gang = world.get(GANGS, "large-0")
            conditions = gang.status.get("conditions", ()) if gang is not None else ()
            return next((each["message"] for each in conditions if each["type"] == "Scheduled"), "")

        await world.until(lambda: "no place even if the cluster were empty" in message(), "the reason")
        assert bound(world) == {}


async def test_waiting_gang_is_placed_when_room_gets_free(world: World) -> None:
    async with operating(world, backends=PLACING):
        await world.create(SETS, workload("first", gpus("worker", 14, 8)))
        await world.until(lambda: len(bound(world)) == 14, "the first gang")
        await world.create(SETS, workload("second", gpus("worker", 4, 8)))
        await world.until(lambda: len(world.pods()) == 18, "the pods of the second gang")
        assert len(bound(world)) == 14
        await world.delete(SETS, "first")
        await world.until(lambda: len(bound(world)) == 4 and len(world.all(PODS)) == 4, "the second gang")


async def test_placement_costs_no_call_where_nodes_are_plentiful(world: World) -> None:
    """The same set with and without placement: the decisions travel with writes that are sent anyway."""

    async def calls(name: str, in_use: SchedulerBackends) -> Counter[str]:
        async with operating(world, backends=in_use) as operator:
            await world.create(SETS, workload(name, gpus("worker", 2, 1), replicas=3))
            await world.until(lambda: len(bound(world)) == 6 and world.all_ready(), "all pods")
            await operator.recorder.until_quiet()
            sent = [call.request for call in operator.recorder.calls]
            await world.delete(SETS, name)
            await world.until(lambda: not world.all(PODS), "its pods to be deleted")
        written = (f"{each.verb} {each.resource}" for each in sent if each.verb in ("create", "patch"))
        # How often a status is written depends on how the pods become ready.
        return Counter(each for each in written if each != "patch podcliques.grove.io")

    plain = backends(Scheduler((SchedulerProfile("default-scheduler", {"placement": "Off"}),)))
    without, placed = await calls("without", plain), await calls("placed", PLACING)
    of_pods = {call: count for call, count in placed.items() if " pods" in call}
    assert of_pods == {"create pods": 6}
    created = Counter({call: count for call, count in placed.items() if call.startswith("create")})
    assert created == Counter({call: count for call, count in without.items() if call.startswith("create")})
