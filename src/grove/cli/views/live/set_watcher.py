"""Sets and everything below them, kept up to date by watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from grove import timing
from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaim
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.kube.cache.cache import Cache
from grove.kube.cache.crd_watch import CrdWatch
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS, RESOURCE_CLAIMS
from grove.operator.caches.resources import resource_of
from grove.views.pod_reason import ReasonedPod
from grove.views.set_view import SetObjects, SetView, set_views

_PARTS = (PodCliqueScalingGroup, PodClique, PodGang)


class Screen(Protocol):
    """The output that a set is shown on."""

    def show(self, view: SetView) -> None: ...


class SetWatcher:
    """The sets of a namespace or of all, kept up to date by watches."""

    def __init__(
        self,
        namespace: str | None,
        name: str | None = None,
        selector: str = "",
        *,
        pods: bool = True,
        claims: bool = False,
    ) -> None:
        chosen = labels.managed(name) if name else labels.MANAGED_BY_OPERATOR
        self._name, self._pods = name, pods
        self._sets: Cache[Any] = Cache(
            resource_of(PodCliqueSet.KIND), PodCliqueSet, namespace=namespace, labels=selector
        )
        self._caches: list[Cache[Any]] = [
            self._sets,
            *(Cache(resource_of(kind.KIND), kind, namespace=namespace, labels=chosen) for kind in _PARTS),
        ]
        if pods:
            self._caches.append(Cache(PODS, ReasonedPod, namespace=namespace, labels=chosen))
        if claims:
            self._caches.append(Cache(RESOURCE_CLAIMS, ResourceClaim, namespace=namespace, labels=chosen))
        self._changed = asyncio.Event()
        for cache in self._caches:
            cache.subscribe(lambda _old, _new: self._changed.set())

    @asynccontextmanager
    async def on(self, client: Client) -> AsyncIterator[None]:
        """Watch until the block is left. Waits for kinds that are not served yet."""
        crd_watch = CrdWatch()
        runs = [Reflector(client, cache, crd_watch=crd_watch).run() for cache in self._caches]
        tasks = [asyncio.create_task(run) for run in (crd_watch.run(client), *runs)]
        try:
            for cache in self._caches:
                await cache.synced.wait()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def check_rights(self, client: Client) -> None:
        """Open each watch once. Raises ApiError: a reflector retries, as the operator must."""
        await asyncio.gather(*(self._check_right(client, cache) for cache in self._caches))

    async def _check_right(self, client: Client, cache: Cache[Any]) -> None:
        parameters = {"labelSelector": cache.labels, "timeoutSeconds": 1}
        async with client.stream(
            cache.resource, parameters, namespace=cache.namespace, idle_timeout=timing.WATCH_IDLE_TIMEOUT
        ):
            pass

    def views(self) -> tuple[SetView, ...]:
        """The sets as the caches hold them."""
        sets = tuple(each for each in self._sets if self._name in (None, each.metadata.name))
        parts = [tuple(cache) for cache in self._caches[1:]]
        if not self._pods:
            parts.insert(len(_PARTS), None)  # type: ignore[arg-type]
        return set_views(SetObjects(sets, *parts), time.time())

    def view(self, name: str) -> SetView | None:
        """A set as the caches hold it; None if it does not exist."""
        return next((one for one in self.views() if one.name == name), None)

    def gone(self, name: str) -> bool:
        """Whether neither the set nor any object of it exists."""
        everything = (found.metadata for cache in self._caches for found in cache)
        return not any(name in (meta.name, meta.labels.get(labels.PART_OF)) for meta in everything)

    async def until(self, done: Callable[[], bool], name: str, screen: Screen) -> None:
        """Show a set after each watch event, until `done` holds."""
        async for views in self.states():
            for view in views:
                if view.name == name:
                    screen.show(view)
            if done():
                return

    async def states(self) -> AsyncIterator[tuple[SetView, ...]]:
        """The sets now, and after each change."""
        while True:
            self._changed.clear()
            yield self.views()
            await self._changed.wait()
            await asyncio.sleep(timing.SCREEN_INTERVAL)
