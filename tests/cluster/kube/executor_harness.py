"""An executor with caches on the real server, and faults."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct

from grove.api.intents import Create, Intent, Target
from grove.api.meta import ObjectMeta
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.resource import CONFIG_MAPS, NODES, PODS, SERVICES, Resource
from grove.kube.executor.cache_store import CacheStore
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import Outcome
from grove.kube.testing.faults import FaultyTransport

TEAPOTS = Resource("example.com", "v1", "teapots", "Teapot")


class ConfigMap(Struct, frozen=True):
    """The fields of a ConfigMap that these tests read."""

    metadata: ObjectMeta
    data: dict[str, str] = {}


class ExecutorHarness:
    """An executor with caches on the real server; `faults` injects faults."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.faults = FaultyTransport(client.transport)
        self.maps = Cache(CONFIG_MAPS, ConfigMap, namespace=namespace, labels={"app": "test"})
        self.pods = Cache(PODS, ConfigMap, namespace=namespace)
        resources = [CONFIG_MAPS, PODS, SERVICES, NODES, TEAPOTS]
        self.executor = Executor(self.faults, resources, store=CacheStore([self.maps, self.pods]))

    async def execute(self, *intents: Intent) -> Outcome:
        return await self.executor.execute(intents)

    def target(self, name: str, kind: str = "ConfigMap") -> Target:
        return Target("v1", kind, name, self.namespace)

    def map(self, name: str, *after: Intent, owner: str | None = None, **metadata: Any) -> Create:
        """A ConfigMap; `owner` is the UID of the controller named `parent`."""
        full_metadata: dict[str, Any] = {"name": name, "labels": {"app": "test"}, **metadata}
        if owner is not None:
            full_metadata["ownerReferences"] = [controller(owner)]
        return Create(self.target(name), {"metadata": full_metadata}, tuple(intent.id for intent in after))

    async def stored(self, name: str) -> ConfigMap:
        return await self.client.get(CONFIG_MAPS, name, namespace=self.namespace, as_type=ConfigMap)

    async def until_deleted(self, name: str) -> None:
        """Wait until the cache has removed the object."""
        deleted = asyncio.Event()

        def on_change(old: ConfigMap | None, new: ConfigMap | None) -> None:
            if new is None and old is not None and old.metadata.name == name:
                deleted.set()

        stop = self.maps.subscribe(on_change)
        async with asyncio.timeout(120):
            while self.maps.get(self.namespace, name) is not None:
                await deleted.wait()
        stop()


def controller(uid: str, name: str = "parent") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": True}
