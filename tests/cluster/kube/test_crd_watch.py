"""Resources whose CRD is installed after the operator, removed, and installed again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest
from msgspec import Raw

from grove.kube.auth import config
from grove.kube.cache.crd_watch import CrdWatch
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    Resource,
)
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.conftest import removed
from tests.cluster.kube.reflector_harness import WatchedCache, config_map, watching

pytestmark = pytest.mark.cluster
TIMEOUT = 120.0
"""Seconds until a new CRD is served: long on a busy machine."""
WIDGETS = Resource("test.example.com", "v1", "widgets", "Widget")


def definition() -> dict[str, object]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    spec = {"group": WIDGETS.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": WIDGETS.label},
        "spec": spec,
    }


async def create_widget(client: Client, namespace: str, name: str) -> None:
    body = config_map(name) | {"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind}
    await client.create(WIDGETS, body, namespace=namespace, as_type=Raw)


async def define(client: Client) -> None:
    """Create the CRD and wait, by event, until it is served."""
    crd_watch = CrdWatch()
    async with running(Reflector(client, crd_watch.definitions)):
        await crd_watch.definitions.synced.wait()
        arriving = asyncio.create_task(crd_watch.wait(WIDGETS, TIMEOUT))
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(), as_type=Object)
        assert await arriving


@asynccontextmanager
async def running(*reflectors: Reflector[object, object]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
async def no_widgets(client: Client) -> AsyncIterator[None]:
    yield
    await removed(client, WIDGETS.label)


async def first_widget(live: WatchedCache, client: Client, namespace: str, name: str) -> None:
    """Create a widget once the cache is synced: not every path of a new CRD is served at once."""
    async with asyncio.timeout(TIMEOUT):
        await live.cache.synced.wait()
    await create_widget(client, namespace, name)
    await live.until(lambda: name in live.data(), TIMEOUT)


@pytest.mark.usefixtures("no_widgets")
async def test_crd_is_installed_later_removed_and_installed_again(client: Client, namespace: str) -> None:
    crd_watch = CrdWatch()
    async with (
        running(Reflector(client, crd_watch.definitions)),
        watching(client, namespace, resource=WIDGETS, crd_watch=crd_watch, synced=False) as live,
    ):
        assert not live.cache.synced.is_set()
        await define(client)
        await first_widget(live, client, namespace, "one")
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, WIDGETS.label, as_type=Object)
        await live.until(lambda: not live.data(), TIMEOUT)
        await until_gone(client)
        await define(client)
        await first_widget(live, client, namespace, "two")
        assert live.data().keys() == {"two"}


async def until_gone(client: Client) -> None:
    """Wait for the DELETED event of the CRD."""
    crd_watch = CrdWatch()
    gone = asyncio.Event()
    async with running(Reflector(client, crd_watch.definitions)):
        await crd_watch.definitions.synced.wait()
        crd_watch.definitions.subscribe(lambda old, new: gone.set() if new is None else None)
        if crd_watch.definitions.get("", WIDGETS.label) is not None:
            async with asyncio.timeout(TIMEOUT):
                await gone.wait()


@pytest.mark.usefixtures("no_widgets")
async def test_later_crd_is_found_without_right_to_watch_crds(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    rules = [{"apiGroups": [WIDGETS.group], "resources": ["widgets"], "verbs": ["list", "watch"]}]
    role = {"metadata": {"name": namespace}, "rules": rules}
    await client.create(CLUSTER_ROLES, role, as_type=Raw)
    binding = {
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}],
    }
    await client.create(CLUSTER_ROLE_BINDINGS, binding, as_type=Raw)
    as_limited = msgspec.structs.replace(
        config.load(cluster.kubeconfig), headers=(("Impersonate-User", "limited"),)
    )
    crd_watch = CrdWatch()
    async with (
        Client(as_limited) as limited,
        running(Reflector(limited, crd_watch.definitions)),
        watching(limited, namespace, resource=WIDGETS, crd_watch=crd_watch, synced=False) as live,
    ):
        await define(client)
        await first_widget(live, client, namespace, "one")
    assert not crd_watch.definitions.synced.is_set()
    await client.delete(CLUSTER_ROLES, namespace, as_type=Object)
    await client.delete(CLUSTER_ROLE_BINDINGS, namespace, as_type=Object)
