"""Domains whose nodes are ready while pods of the set do not exist: the driver and the scheduler do not know
of these pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grove.kube.client.resource import NODES, RESOURCE_QUOTAS
from tests.cluster.operator.nvlink.domain_status import message, reason, reasons
from tests.cluster.operator.scenarios.api_errors import QUOTA_CONTROLLER_START
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import NVIDIA, automatic, gpus, named
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import PODS, SETS

READY = "ComputeDomainsReady"


@asynccontextmanager
async def no_more_pods(world: World) -> AsyncIterator[None]:
    """The namespace accepts no pod until the block is left."""
    await world.create(RESOURCE_QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    await world.until(
        lambda: world.get(RESOURCE_QUOTAS, "none").status.get("used"), "the quota", QUOTA_CONTROLLER_START
    )
    try:
        yield
    finally:
        await world.delete(RESOURCE_QUOTAS, "none")


def domain_of(world: World, name: str) -> tuple[str, str]:
    """The phase and the reason in the status of a set's only domain."""
    (found,) = world.get(SETS, name).status["computeDomains"]
    return found["phase"], found.get("reason", "")


async def test_set_without_pods_in_a_shared_domain_is_not_ready(world: World) -> None:
    """Another set uses the domain, so all its nodes are ready."""
    await world.watch(RESOURCE_QUOTAS)
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, named("one", "team"))
        await world.until(lambda: reason(world, "one") == "AllReady", "the first set")
        async with no_more_pods(world):
            await world.create(SETS, named("two", "team"))
            await world.until(lambda: reason(world, "two") == "PodsWaiting", "its pod does not exist")
            assert message(world, SETS, "two", READY) == "team: 0 of 1 pods have a node"
            assert domain_of(world, "two") == ("Ready", "PodsWaiting")
            assert reason(world, "one") == "AllReady"
        await world.until(lambda: reason(world, "two") == "AllReady", "its pod is created")
        assert domain_of(world, "two") == ("Ready", "")


async def test_domain_recovers_when_its_lost_pod_is_back(world: World) -> None:
    """The node of a pod degrades; the pod is deleted and cannot be replaced at first. Without the node all
    others are ready."""

    async def flip(value: str | None) -> None:
        body = {"metadata": {"annotations": {"dra-standin/flip": value}}}
        await world.client.patch(NODES, pod.spec["nodeName"], body, as_type=dict)

    await world.watch(RESOURCE_QUOTAS)
    async with fabric.one_partition(world.client), operating(world, fabrics=NVIDIA):
        await world.create(SETS, automatic("app", gpus("worker", 2)))
        await world.until(lambda: reason(world, "app") == "AllReady", "the domain is ready")
        pod = world.pods()[0]
        try:
            await flip("true")
            await world.until(lambda: reason(world, "app") == "DomainDegraded", "the node is lost")
            async with no_more_pods(world):
                await world.delete(PODS, pod.name)
                words = "app-0: 1/1 nodes ready; app-0: 1 of 2 pods have a node"
                await world.until(lambda: message(world, SETS, "app", READY) == words, "the pod is missing")
                assert reason(world, "app") == "DomainDegraded"
                assert "ComputeDomainRecovered" not in reasons(world, "app")
        finally:
            await flip(None)
        await world.until(lambda: reason(world, "app") == "AllReady", "the pod is back")
        await world.until(lambda: "ComputeDomainRecovered" in reasons(world, "app"), "the event")
        assert sorted(reasons(world, "app")) == [
            "ComputeDomainCreated",
            "ComputeDomainDegraded",
            "ComputeDomainRecovered",
        ]
