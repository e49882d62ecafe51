"""Timing by watch events: when a number of pods exist, are ready, or are deleted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from grove.api.types.pod import Pod
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, Resource
from grove.plan.members.pod_state import ready

_PATIENCE = 1800.0  # seconds; 10,000 gangs of one pod take minutes to start


class Stopwatch:
    """Watches the pods of one namespace."""

    def __init__(self, cache: Cache[Pod]) -> None:
        self._cache = cache
        self._changed = asyncio.Event()
        self._ready: set[str] = set()
        cache.subscribe(self._record_result)

    def _record_result(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and ready(new):
            self._ready.add(new.metadata.name)
        elif old is not None:
            self._ready.discard(old.metadata.name)
        self._changed.set()

    @property
    def existing(self) -> int:
        return len(self._cache)

    async def created(self, count: int, since: float) -> float:
        return await self._until(lambda: len(self._cache) >= count, since)

    async def ready(self, count: int, since: float) -> float:
        return await self._until(lambda: len(self._ready) >= count, since)

    async def at_most(self, count: int, since: float) -> float:
        return await self._until(lambda: len(self._cache) <= count, since)

    async def _until(self, holds: Callable[[], bool], since: float) -> float:
        async with asyncio.timeout(_PATIENCE):
            while not holds():
                self._changed.clear()
                await self._changed.wait()
        return time.monotonic() - since


@asynccontextmanager
async def watching(client: Client, namespace: str) -> AsyncIterator[Stopwatch]:
    cache = Cache(PODS, Pod, namespace=namespace)
    stopwatch = Stopwatch(cache)
    task = asyncio.create_task(Reflector(client, cache).run())
    try:
        await cache.synced.wait()
        yield stopwatch
    finally:
        task.cancel()
        await asyncio.wait([task])


async def all_gone(client: Client, resource: Resource, namespace: str) -> None:
    """Wait until all objects of the run are deleted: otherwise they would count in the next run."""
    async with gone_at(client, namespace, resource) as gone:
        await gone()


@asynccontextmanager
async def gone_at(
    client: Client, namespace: str, *resources: Resource
) -> AsyncIterator[Callable[[], Awaitable[dict[str, float]]]]:
    """Watches these kinds; yields a function that waits until there are none, and says when the last object
    of each kind was deleted."""
    caches, changed, last = {}, asyncio.Event(), dict[str, float]()

    def record(resource: Resource) -> None:
        last[resource.plural] = time.monotonic()
        changed.set()

    for resource in resources:
        caches[resource.plural] = cache = Cache(resource, Object, namespace=namespace)
        cache.subscribe(lambda _old, _new, resource=resource: record(resource))
    tasks = [asyncio.create_task(Reflector(client, cache).run()) for cache in caches.values()]

    async def gone() -> dict[str, float]:
        async with asyncio.timeout(_PATIENCE):
            while any(map(len, caches.values())):
                changed.clear()
                await changed.wait()
        return last

    try:
        for cache in caches.values():
            await cache.synced.wait()
        yield gone
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
