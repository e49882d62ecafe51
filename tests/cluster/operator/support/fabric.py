"""NVLink on the shared cluster: the driver's CRD and a stand-in for the driver while a test runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import yaml

from grove.fabrics.registry import providers
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.errors import NotFound
from grove.local.standins.dra.driver import DraStandIn
from grove.local.standins.dra.objects import DOMAINS, KEY, NO_CHANNEL, device_classes
from grove.operator.caches.registry import external_resource
from grove.plan.fabric import channels
from tests.chart import ACCESS_REVIEWS, ACCOUNT, NAMESPACE
from tests.cluster.conftest import PATIENCE, apply, established
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import GANGS, SETS, answers
from tests.cluster.operator.support.workloads import Body, clique, workload
from tests.cluster.webhooks.harness import eventually
from tests.fabrics import example_vendor
from tests.shared import shared_data

__all__ = ["DOMAINS", "PODS", "RESOURCE_CLAIMS", "RESOURCE_CLAIM_TEMPLATES", "SETS", "answers"]

CRD = "computedomains.resource.nvidia.com"
NVIDIA = providers(("nvidia",))
FINALIZER = "grove.io/computedomain-finalizer"
AUTO = {"grove.io/auto-mnnvl": "enabled"}


async def install(client: Client, *required: str) -> None:
    """The driver's own CRD; with fields that it does not have required, one that takes no domain."""
    text = shared_data("crds/nvidia/resource.nvidia.com_computedomains.yaml").read_text()
    body = yaml.safe_load(text)
    schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["required"] += required
    await apply(client, body)
    await established(client, CRD)


async def gone(client: Client) -> None:
    """Wait until the CRD has gone, which takes a moment after its last domain."""

    async def asked() -> bool:
        try:
            await client.get(CRDS, CRD, as_type=Object)
        except NotFound:
            return True
        return False

    await eventually(asked)


async def uninstall(client: Client) -> None:
    """Without it there are no domains; those that are there go with it, and what the stand-in brought."""
    await _forget_driver(client)
    for domain in (await client.list(DOMAINS, as_type=Object)).items:
        meta = domain.metadata
        body = {"metadata": {"finalizers": None}}
        with suppress(NotFound):
            await client.patch(DOMAINS, meta.name, body, namespace=meta.namespace, as_type=Object)
    await client.delete(CRDS, CRD, as_type=Object)
    await gone(client)


@asynccontextmanager
async def driver(client: Client) -> AsyncIterator[None]:
    """The stand-in at work."""
    standin = DraStandIn(client, install=False)
    task = asyncio.create_task(standin.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await standin.ready.wait()
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def present(world: World) -> AsyncIterator[None]:
    """The driver's kind, and a stand-in for the driver, as long as a scenario is told."""
    await install(world.client)
    await world.watch(DOMAINS)
    try:
        async with driver(world.client):
            yield
    finally:
        await uninstall(world.client)


async def _forget_driver(client: Client) -> None:
    for slice_ in (await client.list(RESOURCE_SLICES, as_type=Object)).items:
        await client.delete(RESOURCE_SLICES, slice_.metadata.name, as_type=Object)
    for body in device_classes():
        with suppress(NotFound):
            await client.delete(DEVICE_CLASSES, body["metadata"]["name"], as_type=Object)
    for node in (await client.list(NODES, as_type=Object)).items:
        if KEY in node.metadata.labels:
            nothing = {"metadata": {"labels": {KEY: None}}}
            await client.patch(NODES, node.metadata.name, nothing, as_type=Object)


def gpus(name: str, replicas: int = 1, **template: Any) -> Body:
    """A clique of pods with GPUs, and a container beside the one that uses them."""
    containers = [
        {"name": "model", "image": "model:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}},
        {"name": "sidecar", "image": "sidecar:1"},
    ]
    return clique(name, replicas, pod={"containers": containers}, **template)


def automatic(name: str, *cliques: Body, **options: Any) -> Body:
    """A set as admission leaves it where automation is on."""
    body = workload(name, *(cliques or (gpus("worker"),)), **options)
    body["metadata"]["annotations"] = dict(AUTO)
    return body


def named(name: str, domain: str, **options: Any) -> Body:
    """A set whose clique names a domain."""
    notes = {"nvidia.com/computedomain": domain, **options.pop("notes", {})}
    return workload(name, gpus("worker", annotations=notes), **options)


def theirs(name: str, template: str) -> Body:
    """A ComputeDomain that somebody made."""
    channel = {"resourceClaimTemplate": {"name": template}}
    meta = {"metadata": {"name": name}}
    return {"apiVersion": DOMAINS.api_version, "kind": DOMAINS.kind, **meta, "spec": {"channel": channel}}


def claims_nothing(name: str) -> Body:
    """A ResourceClaimTemplate that somebody made for something else."""
    return {"metadata": {"name": name}, "spec": {"spec": {"devices": {}}}}


async def let_go(world: World) -> None:
    """A world whose test failed must not hold up the next one."""
    for domain in world.all(DOMAINS):
        try:
            await world.patch(DOMAINS, domain.name, {"metadata": {"finalizers": None}})
            await world.delete(DOMAINS, domain.name)
        except NotFound:
            continue


def small(name: str, replicas: int = 1) -> Body:
    """A clique of pods that leave room on their nodes: it is the channel that they cannot share."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return clique(name, replicas, pod={"containers": [{"name": "model", "image": "model:1", **limits}]})


async def channel(client: Client, node: str, *, there: bool) -> None:
    """Give a node its channel, or take it away."""
    body = {"metadata": {"annotations": {NO_CHANNEL: None if there else "true"}}}
    await client.patch(NODES, node, body, as_type=Object)


@asynccontextmanager
async def without_channels(client: Client, nodes: Iterable[str]) -> AsyncIterator[None]:
    """Nodes that have GPUs and no channel, until the block is left."""
    for node in nodes:
        await channel(client, node, there=False)
    try:
        yield
    finally:
        for node in nodes:
            await channel(client, node, there=True)


@contextmanager
def impatient() -> Iterator[None]:
    """Pods that wait for a channel need not wait for a minute until somebody is told who has it."""
    before, channels.UNSCHEDULABLE_WAIT = channels.UNSCHEDULABLE_WAIT, 1.0
    try:
        yield
    finally:
        channels.UNSCHEDULABLE_WAIT = before


def scheduled(world: World, gang: str) -> tuple[str, str]:
    """Why a gang has its nodes, or has not, and in which words."""
    found = world.find(GANGS, gang)
    said = (found.status.get("conditions") or ()) if found is not None else ()
    facts = ((fact["reason"], fact["message"]) for fact in said if fact["type"] == "Scheduled")
    return next(facts, ("", ""))


def about_domains(world: World, name: str) -> str:
    """What a set says about its domains."""
    said = world.get(SETS, name).status.get("conditions") or ()
    return next((str(fact["message"]) for fact in said if fact["type"] == "ComputeDomainsReady"), "")


@contextmanager
def never(world: World, broken: Any) -> Iterator[None]:
    """A rule that must hold after every event."""

    def rule() -> None:
        assert not (found := broken()), found

    world.always(rule)
    yield


ISLANDS = external_resource(example_vendor.ISLANDS)


async def install_islands(client: Client) -> None:
    """The kind of a second vendor."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": free}}
    kind = example_vendor.ISLANDS
    names = {"kind": kind.name, "plural": kind.plural, "singular": "island", "listKind": "IslandList"}
    spec = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    meta = {"metadata": {"name": kind.crd_name}}
    await apply(client, {"apiVersion": CRDS.api_version, "kind": CRDS.kind, **meta, "spec": spec})
    await established(client, kind.crd_name)


@asynccontextmanager
async def rights_to_islands(client: Client) -> AsyncIterator[None]:
    """What an administrator gives the operator for a vendor that the chart does not know."""
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
    rule = {"apiGroups": ["example.com"], "resources": ["islands"], "verbs": verbs}
    name, group = "grove-islands", "rbac.authorization.k8s.io"
    role = {"metadata": {"name": name}, "rules": [rule]}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
    await client.create(CLUSTER_ROLES, role, as_type=Object)
    await client.create(CLUSTER_ROLE_BINDINGS, binding, as_type=Object)
    try:
        yield
    finally:
        await client.delete(CLUSTER_ROLE_BINDINGS, name, as_type=Object)
        await client.delete(CLUSTER_ROLES, name, as_type=Object)
        await eventually(lambda: _may_not_see_islands(client))


async def _may_not_see_islands(client: Client) -> bool:
    """API servers tell nobody when they have taken in who may do what: ask."""
    attributes = {"group": "example.com", "resource": "islands", "verb": "watch"}
    spec = {"user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}", "resourceAttributes": attributes}
    body = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind, "spec": spec}
    return not (await client.create(ACCESS_REVIEWS, body, as_type=dict))["status"]["allowed"]
