"""Gangs that the scheduler refuses after their release although their nodes have room: they never stay bound
in part."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from grove import timing
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, PRIORITY_CLASSES
from tests.cluster.operator.placement.extra_nodes import ROOM, Room, room
from tests.cluster.operator.placement.placed_gangs import PLACING
from tests.cluster.operator.scheduling.test_placement_devices import condition
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS, AnyObject, gated
from tests.cluster.operator.support.workloads import Body, clique, workload

PORT = 30_999
LIMIT = 6.0
"""Seconds instead of 30 that such a gang has: more than the back-off of the scheduler."""


@asynccontextmanager
async def no_preemption(client: Client, name: str) -> AsyncIterator[None]:
    """A PriorityClass whose pods preempt no others: the scheduler keeps their nominations when it refuses
    them."""
    body = {"metadata": {"name": name}, "value": 10, "preemptionPolicy": "Never"}
    await client.create(PRIORITY_CLASSES, body, as_type=Object)
    try:
        yield
    finally:
        await client.delete(PRIORITY_CLASSES, name, as_type=Object)


def pod_spec(name: str, priority: str, *ports: int) -> Body:
    container: Body = {"name": "main", "image": "model:1"}
    if ports:
        container["ports"] = [{"containerPort": port, "hostPort": port} for port in ports]
    return {"containers": [container], "nodeSelector": {ROOM: name}, "priorityClassName": priority}


def half_refused(nodes: Room) -> Body:
    """A gang on both nodes. One of its pods needs a host port."""
    first = clique("first", 1, pod=pod_spec(nodes.name, nodes.name))
    second = clique("second", 1, pod=pod_spec(nodes.name, nodes.name, PORT))
    return nodes.confine(workload(nodes.name, first, second))


def is_refused(pod: AnyObject) -> bool:
    """Whether the scheduler refuses a pod, and keeps its nomination."""
    conditions: list[dict[str, Any]] = pod.status.get("conditions") or []
    reasons = [each.get("reason") for each in conditions if each["type"] == "PodScheduled"]
    return reasons == ["Unschedulable"] and bool(pod.status.get("nominatedNodeName"))


async def test_half_bound_gang_that_lacks_a_host_port_starts_over(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "INCOMPLETE_GANG_LIMIT", LIMIT)
    monkeypatch.setattr(timing, "FAILED_DOMAIN_BACKOFF", (1.0, 2.0))
    name = world.namespace
    async with room(client, name) as nodes, no_preemption(client, name), operating(world, backends=PLACING):
        await nodes.grow(2)
        for number, node in enumerate(nodes.nodes):
            other = pod_spec(name, name, PORT)
            body = {"metadata": {"name": f"other-{number}"}, "spec": {**other, "nodeName": node}}
            await world.create(PODS, body)
        await world.create(SETS, half_refused(nodes))

        def pods() -> list[AnyObject]:
            return sorted(world.pods(part_of=name), key=lambda pod: pod.name)

        def half_bound() -> bool:
            found = pods()
            return len(found) == 2 and bool(found[0].spec.get("nodeName")) and is_refused(found[1])

        await world.until(half_bound, "a gang that is half bound")
        before = {pod.metadata.uid for pod in pods()}
        await world.until(
            lambda: not before & {pod.metadata.uid for pod in pods()}, "both pods to be replaced"
        )
        for number in range(len(nodes.nodes)):
            await world.delete(PODS, f"other-{number}")
        await world.until(
            lambda: len(pods()) == 2 and all(pod.spec.get("nodeName") for pod in pods()), "the whole gang"
        )
        await world.delete(SETS, name)
        await world.until(lambda: not world.all(PODS), "the pods to be deleted")


async def test_gang_waits_whole_until_its_volume_is_bound(world: World, client: Client) -> None:
    name = world.namespace
    async with room(client, name) as nodes, operating(world, backends=PLACING):
        await nodes.grow(2)
        claim_spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"metadata": {"name": "data"}, "spec": {**claim_spec, "storageClassName": ""}}
        await client.create(PERSISTENT_VOLUME_CLAIMS, claim, namespace=name, as_type=Object)
        with_volume = {
            "containers": [{"name": "main", "image": "model:1"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        }
        first = clique("first", 1)
        body = nodes.confine(workload(name, first, clique("second", 1, pod=with_volume)))
        await world.create(SETS, body)
        message = "waits for PersistentVolumeClaim data, which is not bound"
        await world.until(lambda: message in condition(world, f"{name}-0", "Scheduled").get("message", ""))
        assert list(map(gated, world.pods())) == [True, True]
        volume = {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/data"},
            "claimRef": {"namespace": name, "name": "data"},
        }
        await client.create(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": volume}, as_type=Object)
        try:
            await world.until(
                lambda: sum(bool(pod.spec.get("nodeName")) for pod in world.pods()) == 2, "the whole gang"
            )
        finally:
            await client.delete(PERSISTENT_VOLUMES, name, as_type=Object)
        await world.delete(SETS, name)
        await world.until(lambda: not world.all(PODS), "the pods to be deleted")
