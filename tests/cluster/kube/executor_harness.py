"""An executor with caches on the real server, and a way to disturb it."""

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
    """As much of a ConfigMap as these tests look at."""

    metadata: ObjectMeta
    data: dict[str, str] = {}


class Bench:
    """An executor with caches on the real server, and a way to disturb it."""

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
        described: dict[str, Any] = {"name": name, "labels": {"app": "test"}, **metadata}
        if owner is not None:
            described["ownerReferences"] = [controller(owner)]
        return Create(self.target(name), {"metadata": described}, tuple(intent.id for intent in after))

    async def stored(self, name: str) -> ConfigMap:
        return await self.client.get(CONFIG_MAPS, name, namespace=self.namespace, as_type=ConfigMap)

    async def until_deleted(self, name: str) -> None:
        """Until the cache announces that the object is gone."""
        ended = asyncio.Event()

        def note(old: ConfigMap | None, new: ConfigMap | None) -> None:
            if new is None and old is not None and old.metadata.name == name:
                ended.set()

        stop = self.maps.subscribe(note)
        async with asyncio.timeout(120):
            while self.maps.get(self.namespace, name) is not None:
                await ended.wait()
        stop()


def controller(uid: str, name: str = "parent") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": True}
