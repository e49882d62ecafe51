"""Gangs whose pods claim devices that exist only in ResourceSlices, on the unmodified scheduler: they are
placed where such devices are free, and wait whole while there are too few."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
)
from grove.schedulers.registry import backends
from tests.cluster.operator.placement.extra_nodes import ROOM, Room, room
from tests.cluster.operator.scheduling.test_placement import account, bound
from tests.cluster.operator.scheduling.test_topology import TOPOLOGIES
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, SETS, gated
from tests.cluster.operator.support.workloads import clique, workload

__all__ = ["account"]

RACK = "example.com/device-rack"
PATIENT = backends(Scheduler((SchedulerProfile("default-scheduler", {"visibleAfter": "Never"}),)))


@asynccontextmanager
async def device_class(client: Client, name: str, **more: Any) -> AsyncIterator[None]:
    """A class of the GPUs among the devices of the driver with the same name."""
    kind = f'device.attributes["{name}"].type'
    selector = {"cel": {"expression": f'device.driver == "{name}" && {kind} == "gpu"'}}
    body = {"metadata": {"name": name}, "spec": {"selectors": [selector], **more}}
    await client.create(DEVICE_CLASSES, body, as_type=Object)
    try:
        yield
    finally:
        await client.delete(DEVICE_CLASSES, name, as_type=Object)


@asynccontextmanager
async def devices(client: Client, driver: str, counts: Mapping[str, int]) -> AsyncIterator[None]:
    """So many GPUs on each node, and one device of another type."""
    for node, count in counts.items():
        names = [*(f"gpu-{i}" for i in range(count)), "other"]
        listed = [
            {"name": each, "attributes": {"type": {"string": each.partition("-")[0]}}} for each in names
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": listed}
        await client.create(RESOURCE_SLICES, {"metadata": {"name": node}, "spec": spec}, as_type=Object)
    try:
        yield
    finally:
        for node in counts:
            await client.delete(RESOURCE_SLICES, node, as_type=Object)


async def claim_template(world: World, name: str, count: int) -> None:
    request = {"name": "gpus", "exactly": {"deviceClassName": world.namespace, "count": count}}
    body = {
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    where = {"namespace": world.namespace}
    await world.client.create(RESOURCE_CLAIM_TEMPLATES, body, as_type=Object, **where)


def claiming(room: Room, template: str) -> dict[str, Any]:
    """The spec of pods with a claim by template, on the nodes of a room."""
    container = {"name": "main", "image": "model:1", "resources": {"claims": [{"name": "gpus"}]}}
    return {
        "containers": [container],
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": template}],
        "nodeSelector": {ROOM: room.name},
    }


def a_gang(room: Room, name: str, pods: int) -> dict[str, Any]:
    return workload(name, clique("worker", pods, pod=claiming(room, "two")))


def condition(world: World, gang: str, type_: str) -> dict[str, Any]:
    found = world.find(GANGS, gang)
    conditions = found.status.get("conditions", ()) if found is not None else ()
    return next((each for each in conditions if each["type"] == type_), {})


async def test_gang_waits_whole_for_devices_that_others_use(world: World, client: Client) -> None:
    name = world.namespace
    async with (
        room(client, name) as nodes,
        device_class(client, name),
        operating(world, backends=PATIENT),
    ):
        await nodes.grow(3)
        async with devices(client, name, dict(zip(nodes.nodes, (2, 2, 0), strict=True))):
            for template, count in (("one", 1), ("two", 2)):
                await claim_template(world, template, count)
            foreign = {"metadata": {"name": "foreign"}, "spec": claiming(nodes, "one")}
            foreign["spec"]["terminationGracePeriodSeconds"] = 0
            await client.create(PODS, foreign, namespace=name, as_type=Object)
            await world.until(lambda: "foreign" in bound(world), "the pod of others")
            await world.create(SETS, a_gang(nodes, "mine", 2))
            reason = f"needs 4 devices of class {name}, 3 free"
            await world.until(lambda: reason in condition(world, "mine-0", "Scheduled").get("message", ""))
            assert list(map(gated, world.pods(part_of="mine"))) == [True, True]
            unprotected = condition(world, "mine-0", "PlacementUnprotected")
            assert (unprotected["status"], unprotected["reason"]) == ("True", "DevicesNotHeld")
            assert f"Devices of class {name} are counted, but not held" in unprotected["message"]
            await client.delete(PODS, "foreign", namespace=name, as_type=Object)
            await world.until(lambda: sorted(bound(world).values()) == nodes.nodes[:2], "the gang")
            await world.until(lambda: not condition(world, "mine-0", "PlacementUnprotected"))
            await world.delete(SETS, "mine")
            await world.until(lambda: not world.all(PODS), "its pods to be deleted")


async def test_gang_is_placed_in_the_rack_that_has_devices(world: World, client: Client) -> None:
    """Both racks have as much of all other resources, and the first one comes first by name. Claim template
    and device class are created while the gang waits for them."""
    name = world.namespace
    async with (
        room(client, name) as nodes,
        topology(client, name),
        operating(world, topology_aware=True, backends=PATIENT),
    ):
        for rack in ("a", "b"):
            await nodes.grow(2, {RACK: f"{name}-{rack}"})
        async with (
            devices(client, name, dict(zip(nodes.nodes, (2, 1, 2, 2), strict=True))),
            AsyncExitStack() as stack,
        ):
            body = a_gang(nodes, "mine", 2)
            body["spec"]["template"]["topologyConstraint"] = {
                "topologyName": name,
                "pack": {"required": "rack"},
            }
            await world.create(SETS, body)
            waiting = "waits for ResourceClaimTemplate two, which does not exist"
            await world.until(lambda: waiting in condition(world, "mine-0", "Scheduled").get("message", ""))
            await claim_template(world, "two", 2)
            reason = f"needs 4 devices of class {name}, 0 free"
            await world.until(lambda: reason in condition(world, "mine-0", "Scheduled").get("message", ""))
            await stack.enter_async_context(device_class(client, name))
            await world.until(lambda: sorted(bound(world).values()) == nodes.nodes[2:], "the gang")
            await world.create(SETS, {**body, "metadata": {"name": "second"}})
            reason = f"needs 4 devices of class {name}, 3 free"
            await world.until(lambda: reason in condition(world, "second-0", "Scheduled").get("message", ""))
            for each in ("mine", "second"):
                await world.delete(SETS, each)
            await world.until(lambda: not world.all(PODS), "the pods to be deleted")


async def test_gang_gets_devices_for_the_resource_that_it_requests(world: World, client: Client) -> None:
    """No node has the resource itself. One node has devices for a single pod, which a pod of others uses."""
    name, resource = world.namespace, f"example.com/{world.namespace}"
    async with (
        room(client, name) as nodes,
        device_class(client, name, extendedResourceName=resource),
        operating(world, backends=PATIENT),
    ):
        await nodes.grow(2)
        async with devices(client, name, dict(zip(nodes.nodes, (4, 2), strict=True))):
            limits = {"limits": {resource: "2"}}
            pod = {
                "containers": [{"name": "main", "image": "model:1", "resources": limits}],
                "nodeSelector": {ROOM: name},
            }
            foreign = {"metadata": {"name": "foreign"}, "spec": {**pod, "terminationGracePeriodSeconds": 0}}
            await client.create(PODS, foreign, namespace=name, as_type=Object)
            await world.until(lambda: "foreign" in bound(world), "the pod of others")
            await world.create(SETS, workload("mine", clique("worker", 3, pod=pod)))
            reason = f"needs 6 {resource}, 4 free"
            await world.until(lambda: reason in condition(world, "mine-0", "Scheduled").get("message", ""))
            assert condition(world, "mine-0", "PlacementUnprotected")["reason"] == "DevicesNotHeld"
            await client.delete(PODS, "foreign", namespace=name, as_type=Object)
            await world.until(lambda: len(bound(world)) == 3, "the gang")
            await world.delete(SETS, "mine")
            await world.until(lambda: not world.all(PODS), "its pods to be deleted")


@asynccontextmanager
async def topology(client: Client, name: str) -> AsyncIterator[None]:
    """A topology with racks only."""
    body = {
        "apiVersion": TOPOLOGIES.api_version,
        "kind": TOPOLOGIES.kind,
        "metadata": {"name": name},
        "spec": {"levels": [{"domain": "rack", "key": RACK}]},
    }
    await client.create(TOPOLOGIES, body, as_type=Object)
    try:
        yield
    finally:
        await client.delete(TOPOLOGIES, name, as_type=Object)
