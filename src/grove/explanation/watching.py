"""Keeps an object and what belongs to it up to date by watches, for live views."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from grove import timing
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.events import Event
from grove.explanation.model import ObjectRef
from grove.explanation.operator_lease import Leases
from grove.explanation.reading import CLIQUES, GANGS, GRAPHS, GROUPS, SETS
from grove.explanation.subtree import Objects, Subtree, subtree
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import EVENTS, LEASES, PODS
from grove.kube.errors import Forbidden, KubeError, NotFound
from grove.kube.leader.lease import Lease

_OPTIONAL = frozenset({GRAPHS, LEASES})


class ObjectGone(KubeError):
    """The object of a live view was deleted."""


class SubtreeWatch:
    """An object of one set, or of a graph without a set, kept up to date. `more`: caches to watch as well."""

    def __init__(
        self, about: ObjectRef, set_name: str | None, lease: str = "", more: Iterable[Cache[Any]] = ()
    ) -> None:
        self._about, place = about, about.namespace
        # The set of a graph that has none yet is not known: then all sets of the namespace are watched.
        chosen = labels.managed(set_name) if set_name else labels.MANAGED_BY_OPERATOR
        name = f"metadata.name={set_name}" if set_name else ""
        self._leases: Cache[Lease] | None = (
            Cache(LEASES, Lease, fields=f"metadata.name={lease}") if lease else None
        )
        self._caches: list[Cache[Any]] = [
            Cache(GRAPHS, DynamoGraphDeployment, namespace=place),
            Cache(SETS, PodCliqueSet, namespace=place, fields=name),
            Cache(GROUPS, PodCliqueScalingGroup, namespace=place, labels=chosen),
            Cache(CLIQUES, PodClique, namespace=place, labels=chosen),
            Cache(GANGS, PodGang, namespace=place, labels=chosen),
            Cache(PODS, Pod, namespace=place, labels=chosen),
        ]
        self._all = [*self._caches, *more, *([self._leases] if self._leases is not None else [])]
        self._changed = asyncio.Event()
        for cache in self._all:
            cache.subscribe(lambda _old, _new: self._changed.set())

    @asynccontextmanager
    async def on(self, client: Client) -> AsyncIterator[None]:
        """Watch until the block is left. Raises Forbidden if the user may not watch what is needed."""
        async with watching(client, self._all):
            yield

    async def changed(self, timeout: float | None = None) -> None:
        """Wait for a change, at most so many seconds; those that follow at once are one."""
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(timing.SCREEN_INTERVAL)
        self._changed.clear()

    def tree(self) -> Subtree:
        """The object as it is now. Raises ObjectGone."""
        objects = Objects(*(tuple(cache) for cache in self._caches))
        about = self._about
        names = ((kind, meta.namespace, meta.name) for kind, meta in objects.named())
        if (about.kind, about.namespace, about.name) not in names:
            raise ObjectGone(f"{about} was deleted")
        return subtree(objects, about)

    def leases(self) -> Leases:
        """The Leases of operators; None if they cannot be watched."""
        if self._leases is None or not self._leases.synced.is_set():
            return None
        return tuple(self._leases)


def event_cache(namespace: str, fields: str) -> Cache[Event]:
    """The events of a namespace, to be watched with an object."""
    return Cache(EVENTS, Event, namespace=namespace, fields=fields)


@asynccontextmanager
async def watching(client: Client, caches: Sequence[Cache[Any]]) -> AsyncIterator[None]:
    """Keep caches up to date until the block is left; those of kinds that are not served stay empty. Raises
    Forbidden if the user may not watch what is needed."""
    served = await asyncio.gather(*(_is_watchable(client, cache) for cache in caches))
    watched = [cache for cache, is_served in zip(caches, served, strict=True) if is_served]
    tasks = [asyncio.create_task(Reflector(client, cache).run()) for cache in watched]
    try:
        for cache in watched:
            await cache.synced_or_absent.wait()
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _is_watchable(client: Client, cache: Cache[Any]) -> bool:
    """Whether the server serves a kind. Raises Forbidden if this user may not watch it and a live view is
    impossible without; a reflector would try again for ever."""
    parameters = {"labelSelector": cache.labels, "fieldSelector": cache.fields, "timeoutSeconds": 1}
    try:
        async with client.stream(
            cache.resource, parameters, namespace=cache.namespace, idle_timeout=timing.REQUEST_TIMEOUT
        ):
            return True
    except NotFound:
        return False
    except Forbidden:
        if cache.resource in _OPTIONAL:
            return False
        raise
