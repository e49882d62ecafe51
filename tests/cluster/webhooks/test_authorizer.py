"""Protection of what the operator manages, on the real API server: by whom it may be touched, and how."""

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
from grove.operator.caches.registry import resource_of
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
    pod = {"containers": [{"name": "main", "image": "model:1"}], "schedulerName": "nobody"}
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
    marks = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "app"}
    identity = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**identity, "metadata": {"name": name, "labels": marks}, **spec_of(resource)}


CORE = (SECRETS, SERVICE_ACCOUNTS, SERVICES, ROLES, HORIZONTAL_POD_AUTOSCALERS)
OURS = tuple(resource_of(kind) for kind in (PodClique.KIND, PodCliqueScalingGroup.KIND, PodGang.KIND))


class Guarded:
    """A namespace with a set, protected; acted upon as different users."""

    def __init__(self, namespace: str, operator: Client, jane: Client) -> None:
        self.namespace, self.operator, self.jane = namespace, operator, jane

    async def make(self, resource: Resource, name: str = "managed", **metadata: Any) -> Body:
        body = managed(resource, name)
        body["metadata"] |= metadata
        return await self.operator.create(resource, body, namespace=self.namespace, as_type=dict)

    async def touch(self, client: Client, resource: Resource, name: str = "managed") -> None:
        change = {"metadata": {"annotations": {"touched": client.__class__.__name__}}}
        await client.patch(resource, name, change, namespace=self.namespace, as_type=Object)

    async def delete(self, client: Client, resource: Resource, name: str = "managed") -> None:
        await client.delete(resource, name, namespace=self.namespace, as_type=Object)


def as_user(connection: Config, name: str) -> Config:
    """Somebody else, who may do everything."""
    return replace(connection, headers=(("Impersonate-User", name), ("Impersonate-Group", "system:masters")))


@asynccontextmanager
async def guarding(client: Client, connection: Config, namespace: str) -> AsyncIterator[Guarded]:
    operator = account(namespace)
    switches = {"enabled": True, "exemptServiceAccountUserNames": CONTROLLERS}
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            admitting(client, connection, namespace, operator=operator, authorizer=switches)
        )
        ours, hers = [
            await stack.enter_async_context(Client(as_user(connection, name))) for name in (operator, "jane")
        ]
        await client.create(SETS, good("app"), namespace=namespace, as_type=Object)
        guarded = Guarded(namespace, ours, hers)
        await until_guarded(guarded)
        yield guarded


async def until_guarded(guarded: Guarded) -> None:
    """API servers tell nobody when they have taken in a webhook configuration: ask until one has."""
    before, body = calls(Path.AUTHORIZE), managed(OURS[0], "probe")
    async with asyncio.timeout(PATIENCE):
        while calls(Path.AUTHORIZE) == before:
            try:
                await guarded.jane.create(
                    OURS[0], body, namespace=guarded.namespace, as_type=Object, dry_run=True
                )
            except ApiError:
                continue


@pytest.fixture
async def guarded(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> AsyncIterator[Guarded]:
    async with guarding(client, config.load(cluster.kubeconfig), namespace) as found:
        yield found


async def refused(doing: Awaitable[object]) -> str:
    with pytest.raises(Forbidden) as told:
        await doing
    return told.value.status.message


async def test_only_the_operator_touches_what_it_manages(guarded: Guarded) -> None:
    for resource in (*CORE, *OURS):
        await guarded.make(resource)
        await guarded.touch(guarded.operator, resource)
        assert REFUSED in await refused(guarded.touch(guarded.jane, resource))
        assert REFUSED in await refused(guarded.delete(guarded.jane, resource))
    for resource in OURS:
        body = managed(resource, "by-hand")
        making = guarded.jane.create(resource, body, namespace=guarded.namespace, as_type=Object)
        assert f"{REFUSED} created by the Grove operator" in await refused(making)
    for resource in (*CORE, *OURS):
        await guarded.delete(guarded.operator, resource)


async def test_what_is_not_about_us_never_reaches_us(guarded: Guarded) -> None:
    """Objects of others, status and scale; and pods may be deleted, but not changed."""
    before = calls(Path.AUTHORIZE)
    body = managed(SERVICES, "others")
    del body["metadata"]["labels"]
    await guarded.jane.create(SERVICES, body, namespace=guarded.namespace, as_type=Object)
    await guarded.touch(guarded.jane, SERVICES, "others")
    await guarded.delete(guarded.jane, SERVICES, "others")
    await guarded.make(OURS[0])
    await guarded.jane.set_scale(OURS[0], "managed", 3, namespace=guarded.namespace)
    condition = {"status": {"observedGeneration": 1}}
    await guarded.jane.patch(
        OURS[0], "managed", condition, namespace=guarded.namespace, subresource="status", as_type=Object
    )
    await guarded.make(PODS)
    await guarded.touch(guarded.operator, PODS)
    assert calls(Path.AUTHORIZE) == before
    assert REFUSED in await refused(guarded.touch(guarded.jane, PODS))
    await guarded.delete(guarded.jane, PODS)


async def test_a_set_may_give_up_its_protection(guarded: Guarded, client: Client) -> None:
    await guarded.make(SERVICES)
    assert REFUSED in await refused(guarded.touch(guarded.jane, SERVICES))
    opened = {"metadata": {"annotations": {"grove.io/disable-managed-resource-protection": "true"}}}
    await client.patch(SETS, "app", opened, namespace=guarded.namespace, as_type=Object)
    await until(lambda: guarded.touch(guarded.jane, SERVICES))
    await guarded.delete(guarded.jane, SERVICES)


async def test_what_a_set_left_behind_is_nobodys(guarded: Guarded, client: Client) -> None:
    await guarded.make(SERVICES)
    await client.delete(SETS, "app", namespace=guarded.namespace, as_type=Object)
    await until(lambda: guarded.touch(guarded.jane, SERVICES))
    await guarded.delete(guarded.jane, SERVICES)


async def until(doing: Callable[[], Awaitable[None]]) -> None:
    """The cache of the webhooks may be a moment behind."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await doing()
            except Forbidden:
                continue


async def test_the_garbage_collector_passes(guarded: Guarded, client: Client) -> None:
    namespace = guarded.namespace
    owner = await client.create(
        CONFIG_MAPS, {"metadata": {"name": "owner"}}, namespace=namespace, as_type=Object
    )
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}
    await guarded.make(SERVICES, ownerReferences=[reference])
    assert REFUSED in await refused(guarded.delete(guarded.jane, SERVICES))
    await client.delete(CONFIG_MAPS, "owner", namespace=namespace, as_type=Object)
    await seen(client, Cache(SERVICES, Object, namespace=namespace), lambda found: not len(found), GARBAGE)


async def test_a_namespace_with_everything_in_it_goes(
    cluster: LocalCluster, crds: object, client: Client
) -> None:
    name = "guarded-and-gone"
    await make_namespace(client, name)
    async with guarding(client, config.load(cluster.kubeconfig), name) as guarded:
        for resource in (SERVICES, SECRETS, *OURS):
            await guarded.make(resource)
        await client.delete(NAMESPACES, name, as_type=Object)
        gone = Cache(NAMESPACES, Object, fields=f"metadata.name={name}")
        await seen(client, gone, lambda found: not len(found))
