"""NVLink on the shared cluster: the ComputeDomain CRD, the stand-in for the DRA driver, and workloads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import yaml

from grove import timing
from grove.api.naming.external_keys import NVIDIA_GPU_CLIQUE
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
from grove.operator.caches.resources import external_resource
from tests.chart import ACCESS_REVIEWS, ACCOUNT, NAMESPACE
from tests.cluster.conftest import PATIENCE, apply, established
from tests.cluster.operator.support.harness import World
from tests.cluster.operator.support.objects import GANGS, SETS, is_ready
from tests.cluster.operator.support.workloads import Body, clique, workload
from tests.cluster.webhooks.harness import eventually
from tests.fabrics import example_vendor
from tests.shared import shared_data

__all__ = ["DOMAINS", "PODS", "RESOURCE_CLAIMS", "RESOURCE_CLAIM_TEMPLATES", "SETS", "is_ready"]

CRD = "computedomains.resource.nvidia.com"
NVIDIA = providers(("nvidia",))
FINALIZER = "grove.io/computedomain-finalizer"
AUTO = {"grove.io/auto-mnnvl": "enabled"}


async def install(client: Client, *required: str) -> None:
    """Install the driver's CRD; with `required` fields that no domain has, one that refuses every domain."""
    text = shared_data("crds/nvidia/resource.nvidia.com_computedomains.yaml").read_text()
    body = yaml.safe_load(text)
    schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["required"] += required
    await apply(client, body)
    await established(client, CRD)


async def install_outdated(client: Client) -> None:
    """Install a CRD of the driver that serves only an older version."""
    body = yaml.safe_load(shared_data("crds/nvidia/resource.nvidia.com_computedomains.yaml").read_text())
    (current,) = body["spec"]["versions"]
    older = {**current, "name": "v1alpha1", "storage": False}
    body["spec"]["versions"] = [older, {**current, "served": False}]
    await apply(client, body)
    await established(client, CRD)


async def until_crd_deleted(client: Client) -> None:
    """Wait until the CRD is deleted, which is a moment after its last domain."""

    async def asked() -> bool:
        try:
            await client.get(CRDS, CRD, as_type=Object)
        except NotFound:
            return True
        return False

    await eventually(asked)


async def uninstall(client: Client) -> None:
    """Delete the CRD with all domains, and the objects that the stand-in for the driver created."""
    await _forget_driver(client)
    for domain in (await client.list(DOMAINS, as_type=Object)).items:
        meta = domain.metadata
        body = {"metadata": {"finalizers": None}}
        with suppress(NotFound):
            await client.patch(DOMAINS, meta.name, body, namespace=meta.namespace, as_type=Object)
    await client.delete(CRDS, CRD, as_type=Object)
    await until_crd_deleted(client)


@asynccontextmanager
async def driver(client: Client) -> AsyncIterator[None]:
    """The stand-in for the driver, running until the block is left."""
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
async def driver_installed(world: World) -> AsyncIterator[None]:
    """The CRD and a stand-in for the driver until the block is left, for scenarios."""
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
    """A clique of pods with two containers, one of which uses GPUs."""
    containers = [
        {"name": "model", "image": "model:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}},
        {"name": "sidecar", "image": "sidecar:1"},
    ]
    return clique(name, replicas, pod={"containers": containers}, **template)


def automatic(name: str, *cliques: Body, **options: Any) -> Body:
    """A set with the annotation that admission adds where automatic domains are enabled."""
    body = workload(name, *(cliques or (gpus("worker"),)), **options)
    body["metadata"]["annotations"] = dict(AUTO)
    return body


def named(name: str, domain: str, **options: Any) -> Body:
    """A set whose clique names a domain in its annotations."""
    notes = {"nvidia.com/computedomain": domain, **options.pop("notes", {})}
    return workload(name, gpus("worker", annotations=notes), **options)


def foreign_domain(name: str, template: str) -> Body:
    """A ComputeDomain that was not created by the operator."""
    channel = {"resourceClaimTemplate": {"name": template}}
    meta = {"metadata": {"name": name}}
    return {"apiVersion": DOMAINS.api_version, "kind": DOMAINS.kind, **meta, "spec": {"channel": channel}}


def foreign_claim_template(name: str) -> Body:
    """A ResourceClaimTemplate that was not created by the driver and requests no device."""
    return {"metadata": {"name": name}, "spec": {"spec": {"devices": {}}}}


async def delete_domains(world: World) -> None:
    """Delete all domains without their finalizers: those of a failed test must not block the next test."""
    for domain in world.all(DOMAINS):
        try:
            await world.patch(DOMAINS, domain.name, {"metadata": {"finalizers": None}})
            await world.delete(DOMAINS, domain.name)
        except NotFound:
            continue


def small(name: str, replicas: int = 1) -> Body:
    """A clique of pods with one GPU each: a node has GPUs for several of them and a channel for one."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return clique(name, replicas, pod={"containers": [{"name": "model", "image": "model:1", **limits}]})


async def channel(client: Client, node: str, *, there: bool) -> None:
    """Let a node publish its channel (`there`), or not."""
    body = {"metadata": {"annotations": {NO_CHANNEL: None if there else "true"}}}
    await client.patch(NODES, node, body, as_type=Object)


@asynccontextmanager
async def one_partition(client: Client) -> AsyncIterator[None]:
    """All nodes are in one NVLink partition, until the block is left: a domain is not split wherever its pods
    are."""
    before = {
        node.metadata.name: node.metadata.labels.get(NVIDIA_GPU_CLIQUE)
        for node in (await client.list(NODES, as_type=Object)).items
    }

    async def label(partitions: Mapping[str, str | None]) -> None:
        for name, partition in partitions.items():
            body = {"metadata": {"labels": {NVIDIA_GPU_CLIQUE: partition}}}
            await client.patch(NODES, name, body, as_type=Object)

    await label(dict.fromkeys(before, "one.0"))
    try:
        yield
    finally:
        await label(before)


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
def short_channel_wait() -> Iterator[None]:
    """Pods that wait for a channel are reported after a second instead of a minute."""
    before, timing.UNSCHEDULABLE_WAIT = timing.UNSCHEDULABLE_WAIT, 1.0
    try:
        yield
    finally:
        timing.UNSCHEDULABLE_WAIT = before


def scheduled_condition(world: World, gang: str) -> tuple[str, str]:
    """Reason and message of a gang's condition `Scheduled`."""
    found = world.find(GANGS, gang)
    conditions = (found.status.get("conditions") or ()) if found is not None else ()
    texts = ((each["reason"], each["message"]) for each in conditions if each["type"] == "Scheduled")
    return next(texts, ("", ""))


def domains_message(world: World, name: str) -> str:
    """The message of a set's condition `ComputeDomainsReady`."""
    conditions = world.get(SETS, name).status.get("conditions") or ()
    return next((str(each["message"]) for each in conditions if each["type"] == "ComputeDomainsReady"), "")


@contextmanager
def never(world: World, violations: Any) -> Iterator[None]:
    """Assert after every watch event that there are no violations."""

    def rule() -> None:
        assert not (found := violations()), found

    world.always(rule)
    yield


ISLANDS = external_resource(example_vendor.ISLANDS)


async def install_islands(client: Client) -> None:
    """Install the CRD of a second vendor."""
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
    """The rights that an administrator grants for a vendor that the chart does not know."""
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
    """Whether the right is withdrawn. API servers do not report when a change of RBAC takes effect: ask."""
    attributes = {"group": "example.com", "resource": "islands", "verb": "watch"}
    spec = {"user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}", "resourceAttributes": attributes}
    body = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind, "spec": spec}
    return not (await client.create(ACCESS_REVIEWS, body, as_type=dict))["status"]["allowed"]
