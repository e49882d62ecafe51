"""The authorizer webhook on the real API server: which users may change and delete managed objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.naming import labels
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podgang import PodGang
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    CONFIG_MAPS,
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    PODS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from grove.kube.errors import ApiError, Forbidden
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.resources import resource_of
from grove.webhooks.registrations import Path, account
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.processes import seen
from tests.cluster.operator.support.world import GARBAGE
from tests.cluster.webhooks.harness import PATIENCE, Body, admitting, calls, good
from tests.namespaces import make_namespace

pytestmark = pytest.mark.cluster

CONTROLLERS = [
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
]
REFUSED = "belongs to PodCliqueSet app and can only be"


def spec_of(resource: Resource) -> Body:
    pod = {"containers": [{"name": "main", "image": "model:1"}], "schedulerName": "none"}
    target = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "x"}
    return {
        SERVICES: {"spec": {"clusterIP": "None", "selector": {"a": "b"}}},
        PODS: {"spec": pod},
        HORIZONTAL_POD_AUTOSCALERS: {"spec": {"maxReplicas": 2, "scaleTargetRef": target}},
        resource_of(PodClique.KIND): {"spec": {"roleName": "r", "replicas": 1, "podSpec": pod}},
        resource_of(PodCliqueScalingGroup.KIND): {"spec": {"replicas": 1, "cliqueNames": ["a"]}},
        resource_of(PodGang.KIND): {"spec": {"podgroups": []}},
    }.get(resource, {})


def managed(resource: Resource, name: str = "managed") -> Body:
    carried = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "app"}
    identity = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**identity, "metadata": {"name": name, "labels": carried}, **spec_of(resource)}


CORE = (SECRETS, SERVICE_ACCOUNTS, SERVICES, ROLES, HORIZONTAL_POD_AUTOSCALERS)
GROVE_KINDS = tuple(resource_of(kind) for kind in (PodClique.KIND, PodCliqueScalingGroup.KIND, PodGang.KIND))


class Protected:
    """A namespace with a protected set, and clients of two users: the operator and jane."""

    def __init__(self, namespace: str, operator: Client, jane: Client) -> None:
        self.namespace, self.operator, self.jane = namespace, operator, jane

    async def create(self, resource: Resource, name: str = "managed", **metadata: Any) -> Body:
        body = managed(resource, name)
        body["metadata"] |= metadata
        return await self.operator.create(resource, body, namespace=self.namespace, as_type=dict)

    async def annotate(self, client: Client, resource: Resource, name: str = "managed") -> None:
        change = {"metadata": {"annotations": {"touched": client.__class__.__name__}}}
        await client.patch(resource, name, change, namespace=self.namespace, as_type=Object)

    async def delete(self, client: Client, resource: Resource, name: str = "managed") -> None:
        await client.delete(resource, name, namespace=self.namespace, as_type=Object)


def as_user(connection: Config, name: str) -> Config:
    """The connection of another user with all rights."""
    return replace(connection, headers=(("Impersonate-User", name), ("Impersonate-Group", "system:masters")))


@asynccontextmanager
async def protecting(client: Client, connection: Config, namespace: str) -> AsyncIterator[Protected]:
    operator = account(namespace)
    switches = {"enabled": True, "exemptServiceAccountUserNames": CONTROLLERS}
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            admitting(client, connection, namespace, operator=operator, authorizer=switches)
        )
        operator_client, jane = [
            await stack.enter_async_context(Client(as_user(connection, name))) for name in (operator, "jane")
        ]
        await client.create(SETS, good("app"), namespace=namespace, as_type=Object)
        protected = Protected(namespace, operator_client, jane)
        await until_protected(protected)
        yield protected


async def until_protected(protected: Protected) -> None:
    """Sends requests until the API server calls the authorizer: it does not report when it has loaded a
    webhook configuration."""
    before, body = calls(Path.AUTHORIZE), managed(GROVE_KINDS[0], "probe")
    async with asyncio.timeout(PATIENCE):
        while calls(Path.AUTHORIZE) == before:
            try:
                await protected.jane.create(
                    GROVE_KINDS[0], body, namespace=protected.namespace, as_type=Object, dry_run=True
                )
            except ApiError:
                continue


@pytest.fixture
async def protected(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> AsyncIterator[Protected]:
    async with protecting(client, config.load(cluster.kubeconfig), namespace) as found:
        yield found


async def refused(request: Awaitable[object]) -> str:
    with pytest.raises(Forbidden) as error:
        await request
    return error.value.status.message


async def test_only_the_operator_may_change_managed_objects(protected: Protected) -> None:
    for resource in (*CORE, *GROVE_KINDS):
        await protected.create(resource)
        await protected.annotate(protected.operator, resource)
        assert REFUSED in await refused(protected.annotate(protected.jane, resource))
        assert REFUSED in await refused(protected.delete(protected.jane, resource))
    for resource in GROVE_KINDS:
        body = managed(resource, "by-hand")
        creation = protected.jane.create(resource, body, namespace=protected.namespace, as_type=Object)
        assert f"{REFUSED} created by the Grove operator" in await refused(creation)
    for resource in (*CORE, *GROVE_KINDS):
        await protected.delete(protected.operator, resource)


async def test_unmanaged_objects_never_call_the_authorizer(protected: Protected) -> None:
    """Neither do status, scale and the operator's own requests. Pods may be deleted, but not changed."""
    before = calls(Path.AUTHORIZE)
    body = managed(SERVICES, "others")
    del body["metadata"]["labels"]
    await protected.jane.create(SERVICES, body, namespace=protected.namespace, as_type=Object)
    await protected.annotate(protected.jane, SERVICES, "others")
    await protected.delete(protected.jane, SERVICES, "others")
    await protected.create(GROVE_KINDS[0])
    await protected.jane.set_scale(GROVE_KINDS[0], "managed", 3, namespace=protected.namespace)
    condition = {"status": {"observedGeneration": 1}}
    await protected.jane.patch(
        GROVE_KINDS[0],
        "managed",
        condition,
        namespace=protected.namespace,
        subresource="status",
        as_type=Object,
    )
    await protected.create(PODS)
    await protected.annotate(protected.operator, PODS)
    assert calls(Path.AUTHORIZE) == before
    assert REFUSED in await refused(protected.annotate(protected.jane, PODS))
    await protected.delete(protected.jane, PODS)


async def test_annotation_on_the_set_disables_protection(protected: Protected, client: Client) -> None:
    await protected.create(SERVICES)
    assert REFUSED in await refused(protected.annotate(protected.jane, SERVICES))
    disabled = {"metadata": {"annotations": {"grove.io/disable-managed-resource-protection": "true"}}}
    await client.patch(SETS, "app", disabled, namespace=protected.namespace, as_type=Object)
    await until(lambda: protected.annotate(protected.jane, SERVICES))
    await protected.delete(protected.jane, SERVICES)


async def test_objects_of_a_deleted_set_are_not_protected(protected: Protected, client: Client) -> None:
    await protected.create(SERVICES)
    await client.delete(SETS, "app", namespace=protected.namespace, as_type=Object)
    await until(lambda: protected.annotate(protected.jane, SERVICES))
    await protected.delete(protected.jane, SERVICES)


async def until(request: Callable[[], Awaitable[None]]) -> None:
    """Repeats a request until it is allowed: the cache of the webhooks may lag behind."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await request()
            except Forbidden:
                continue


async def test_garbage_collector_may_delete_managed_objects(protected: Protected, client: Client) -> None:
    namespace = protected.namespace
    owner = await client.create(
        CONFIG_MAPS, {"metadata": {"name": "owner"}}, namespace=namespace, as_type=Object
    )
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}
    await protected.create(SERVICES, ownerReferences=[reference])
    assert REFUSED in await refused(protected.delete(protected.jane, SERVICES))
    await client.delete(CONFIG_MAPS, "owner", namespace=namespace, as_type=Object)
    await seen(client, Cache(SERVICES, Object, namespace=namespace), lambda found: not len(found), GARBAGE)


async def test_namespace_with_managed_objects_is_deleted(
    cluster: LocalCluster, crds: object, client: Client
) -> None:
    name = "protected-and-deleted"
    await make_namespace(client, name)
    async with protecting(client, config.load(cluster.kubeconfig), name) as protected:
        for resource in (SERVICES, SECRETS, *GROVE_KINDS):
            await protected.create(resource)
        await client.delete(NAMESPACES, name, as_type=Object)
        gone = Cache(NAMESPACES, Object, fields=f"metadata.name={name}")
        await seen(client, gone, lambda found: not len(found))
