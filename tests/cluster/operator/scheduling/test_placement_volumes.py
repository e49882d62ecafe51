"""Gangs whose pods have volumes by claims, on the unmodified scheduler: placed on nodes that can use them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from tests.cluster.operator.placement.extra_nodes import ROOM, room
from tests.cluster.operator.scheduling.test_placement import account, bound
from tests.cluster.operator.scheduling.test_placement_devices import PATIENT, RACK, condition, topology
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload

__all__ = ["account"]


@asynccontextmanager
async def volume_in_rack(client: Client, name: str, rack: str) -> AsyncIterator[None]:
    """A volume that only the nodes of a rack can use, for the claim `data` of the namespace of this name."""
    expression = {"key": RACK, "operator": "In", "values": [rack]}
    spec = {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/data"},
        "claimRef": {"namespace": name, "name": "data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    await client.create(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": spec}, as_type=Object)
    try:
        yield
    finally:
        await client.delete(PERSISTENT_VOLUMES, name, as_type=Object)


async def test_gang_is_placed_in_the_rack_of_its_volume(world: World, client: Client) -> None:
    """Both racks have as much of everything else, and the first one comes first by name."""
    name = world.namespace
    async with (
        room(client, name) as nodes,
        topology(client, name),
        volume_in_rack(client, name, f"{name}-b"),
        operating(world, topology_aware=True, backends=PATIENT),
    ):
        for rack in ("a", "b"):
            await nodes.grow(2, {RACK: f"{name}-{rack}"})
        pod: dict[str, Any] = {
            "nodeSelector": {ROOM: name},
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        }
        body = workload("mine", clique("worker", 2, pod=pod))
        packed = {"topologyName": name, "pack": {"required": "rack"}}
        body["spec"]["template"]["topologyConstraint"] = packed
        await world.create(SETS, body)
        waiting = "waits for PersistentVolumeClaim data, which does not exist"
        await world.until(lambda: waiting in condition(world, "mine-0", "Scheduled").get("message", ""))
        spec = {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
            "volumeName": name,
        }
        claim = {"metadata": {"name": "data"}, "spec": spec}
        await client.create(PERSISTENT_VOLUME_CLAIMS, claim, namespace=name, as_type=Object)
        await world.until(lambda: len(bound(world)) == 2, "the gang")
        assert set(bound(world).values()) <= set(nodes.nodes[2:])
        await world.delete(SETS, "mine")
        await world.until(lambda: not world.all(PODS), "the pods to be deleted")
