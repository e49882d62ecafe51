"""The PriorityClass of a set: its pods have it, a change is rolled out, and a missing one is reported."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from grove.api.error_codes import ErrorCode
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, PRIORITY_CLASSES
from grove.kube.errors import NotFound
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import GANGS, SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.webhooks.harness import admitting, refusal

pytestmark = pytest.mark.cluster


@asynccontextmanager
async def priority_class(client: Client, name: str, value: int) -> AsyncIterator[str]:
    body = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind}
    body |= {"metadata": {"name": name}, "value": value}
    await client.create(PRIORITY_CLASSES, body, as_type=Object)
    try:
        yield name
    finally:
        with suppress(NotFound):
            await client.delete(PRIORITY_CLASSES, name, as_type=Object)


def a_set(name: str, priority_class: str) -> dict[str, Any]:
    body = workload(name, clique("a", 2), clique("b"))
    body["spec"]["template"]["priorityClassName"] = priority_class
    return body


def priorities(world: World) -> list[tuple[str, int]]:
    """Class and priority of each pod."""
    return [(pod.spec.get("priorityClassName", ""), pod.spec["priority"]) for pod in world.pods()]


def error_codes(world: World, name: str) -> list[str]:
    return [each["code"] for each in world.get(SETS, name).status.get("lastErrors", ())]


async def test_class_of_a_set_is_that_of_its_pods(world: World, client: Client) -> None:
    async with (
        priority_class(client, f"{world.namespace}-low", 10) as low,
        priority_class(client, f"{world.namespace}-high", 20) as high,
        operating(world),
    ):
        await world.create(SETS, a_set("wl", low))
        await world.until_ready()
        assert priorities(world) == [(low, 10)] * 3
        before = {pod.name for pod in world.pods()}
        await world.patch(SETS, "wl", {"spec": {"template": {"priorityClassName": high}}})
        await world.until(lambda: set(priorities(world)) == {(high, 20)}, "the other class in all pods")
        await world.until_ready()
        assert not before & {pod.name for pod in world.pods()}, "a pod cannot change its class"


async def test_missing_class_is_reported_until_it_exists(world: World, client: Client) -> None:
    """The set is stored without admission. It gets its pods, and they get the class once it exists."""
    name = f"{world.namespace}-late"
    async with operating(world):
        await world.create(SETS, a_set("wl", name))
        await world.until(lambda: world.get(SETS, "wl").status.get("availableReplicas") == 1, "its pods")
        assert priorities(world) == [("", 0)] * 3
        await world.until(
            lambda: error_codes(world, "wl") == [ErrorCode.GET_PRIORITY_CLASS], "the error of the set"
        )
        assert world.get(SETS, "wl").status["observedGeneration"] == 1
        assert "priorityClassName" not in world.get(GANGS, "wl-0").spec
        async with priority_class(client, name, 30):
            await world.until(lambda: error_codes(world, "wl") == [], "no error")
            await world.until(lambda: world.get(GANGS, "wl-0").spec.get("priorityClassName") == name, "it")
            kept = {pod.name for pod in world.pods()}
            assert priorities(world) == [("", 0)] * 3, "no pod is replaced for it"
            await world.delete(PODS, min(kept), grace_seconds=0)
            await world.until(lambda: (name, 30) in priorities(world), "a successor with the class")
        await world.until(lambda: error_codes(world, "wl") == [ErrorCode.GET_PRIORITY_CLASS], "it is deleted")


async def test_missing_class_is_refused_by_admission(
    cluster: LocalCluster, world: World, client: Client
) -> None:
    name, namespace = f"{world.namespace}-refused", world.namespace
    remedy = "create the PriorityClass, or name another one"
    expected = f'spec.template.priorityClassName: Not found: "{name}": {remedy}'
    await world.create(SETS, a_set("stored", name))
    async with admitting(client, config.load(cluster.kubeconfig), namespace):
        assert expected in await refusal(client, SETS, a_set("wl", name), namespace=namespace)
        body = workload("wl", clique("a", pod={"priorityClassName": name}))
        own = "spec.template.cliques[0].spec.podSpec.spec.priorityClassName: Not found"
        assert own in await refusal(client, SETS, body, namespace=namespace)
        await world.patch(SETS, "stored", {"spec": {"replicas": 2}})
        async with priority_class(client, name, 40):
            assert await refusal(client, SETS, a_set("wl", name), namespace=namespace) == ""
