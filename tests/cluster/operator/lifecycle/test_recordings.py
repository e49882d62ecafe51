"""Records live sets into tests/upgrade if `GROVE_RECORD` names a release; skipped in an ordinary run."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from grove.api.crds import openapi
from grove.kube.client.client import Client
from grove.kube.client.resource import (
    HORIZONTAL_POD_AUTOSCALERS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from grove.kube.errors import NotFound
from tests.chart import Account
from tests.cluster.operator.lifecycle.test_autoscaling import autoscaled
from tests.cluster.operator.lifecycle.test_gang_termination import delete_ready_pods, with_short_delay
from tests.cluster.operator.scenarios.shared_claims import devices, shared_by_pods
from tests.cluster.operator.scenarios.updates import change
from tests.cluster.operator.scheduling.test_topology import TOPOLOGIES, topology
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import DOMAINS
from tests.cluster.operator.support.harness import World, operating, watching
from tests.cluster.operator.support.nodes import cordoned
from tests.cluster.operator.support.objects import CLIQUES, GANGS, GROUPS, SETS
from tests.cluster.operator.support.updates import progress_of, slow
from tests.cluster.operator.support.workloads import Body, clique, small, workload
from tests.upgrade.recordings import Recording, save, save_schemas

RELEASE = os.environ.get("GROVE_RECORD", "")
pytestmark = [pytest.mark.cluster, pytest.mark.skipif(not RELEASE, reason="GROVE_RECORD names no release")]

KINDS = (
    SETS,
    GROUPS,
    CLIQUES,
    GANGS,
    PODS,
    SERVICES,
    HORIZONTAL_POD_AUTOSCALERS,
    SERVICE_ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    DOMAINS,
)
Actions = Callable[[World, list[str]], Awaitable[None]]


async def record(world: World, name: str, options: dict[str, Any], *more: Resource) -> None:
    """Save all objects of the namespace, as they are now."""
    objects: list[Body] = []
    for resource in (*KINDS, *more):
        with suppress(NotFound):  # a kind that is not served
            namespace = world.namespace if resource.namespaced else None
            listing = await world.client.list(resource, namespace=namespace, as_type=dict)
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            objects += ({**kind, **body} for body in listing.items)
    kept = [body for body in objects if body["metadata"]["name"] not in ("default", "kube-root-ca.crt")]
    save(Recording(f"{RELEASE}/{name}", time.time(), options, kept))


async def created(world: World, body: Body) -> None:
    await world.create(SETS, body)
    await world.until_ready()


def ordered() -> Body:
    body = small("ordered")
    body["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeInOrder"
    return body


def packed() -> Body:
    body = small("packed")
    template = body["spec"]["template"]
    template["topologyConstraint"] = {"topologyName": "recorded", "packDomain": "block"}
    template["podCliqueScalingGroups"][0]["topologyConstraint"] = {
        "topologyName": "recorded", "packDomain": "rack"
    }  # fmt: skip
    return body


async def mid_update(world: World, _: list[str]) -> None:
    """One replica is updated, the other one is being updated."""
    await created(world, slow(small("updating"), 2))
    await change(world, "updating", "next:1", "router", "leader", "worker")
    await world.until(lambda: progress_of(world, "updating").get("currentlyUpdating"))


async def terminated(world: World, agents: list[str]) -> None:
    """The pods of a replica that fell below `minAvailable` were deleted and created again."""
    await created(
        world, with_short_delay(workload("terminated", clique("worker", 2, 2), clique("router"), replicas=2))
    )
    before = {pod.uid for pod in world.pods() if "-0-" in pod.name}
    async with cordoned(world, agents):
        await delete_ready_pods(world, "terminated-0-worker")
        await world.until(lambda: not before & {pod.uid for pod in world.all(PODS)})
    await world.until_ready()


def creates(make: Callable[[], Body]) -> Actions:
    async def act(world: World, _: list[str]) -> None:
        await created(world, make())

    return act


@asynccontextmanager
async def no_context(_: World) -> AsyncIterator[None]:
    yield


SCENARIOS: dict[str, tuple[Actions, Callable[[World], Any], dict[str, Any]]] = {
    "plain": (creates(lambda: workload("plain", clique("worker", 2), replicas=2)), no_context, {}),
    "groups": (creates(lambda: small("groups", replicas=2)), no_context, {}),
    "start-order": (creates(ordered), no_context, {}),
    "autoscaled": (creates(autoscaled), no_context, {}),
    "topology": (creates(packed), lambda world: topology(world, "recorded"), {"topologyAware": True}),
    "fabric": (
        creates(lambda: fabric.automatic("fabric", replicas=2)),
        fabric.driver_installed,
        {"fabrics": ["nvidia"]},
    ),
    "sharing": (creates(shared_by_pods), devices, {}),
    "mid-update": (mid_update, no_context, {}),
    "terminated": (terminated, no_context, {}),
}  # fmt: skip


def test_schemas_are_recorded() -> None:
    save_schemas(RELEASE, openapi.extract())


@pytest.mark.parametrize("name", SCENARIOS)
async def test_live_set_is_recorded(
    client: Client, aware_account: Account, namespace: str, agents: list[str], name: str
) -> None:
    act, context, options = SCENARIOS[name]
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(watching(client, aware_account.config, namespace))
        await stack.enter_async_context(context(world))
        fabrics = fabric.NVIDIA if "fabrics" in options else None
        aware = bool(options.get("topologyAware"))
        async with operating(world, topology_aware=aware, fabrics=fabrics) as operator:
            await act(world, agents)
            if name != "mid-update":
                await operator.recorder.until_quiet()
        await record(world, name, options, *((TOPOLOGIES,) if aware else ()))
        async with operating(world, topology_aware=aware, fabrics=fabrics):
            for each in world.names(SETS):
                await world.delete(SETS, each)
            await world.until(lambda: not world.all(SETS) and not world.all(PODS))
