"""The watches of the dashboard, whether they are interrupted, and what they could not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from grove import timing
from grove.dashboard.model import Connection
from grove.dashboard.problems import Problem
from grove.dashboard.state.observed import Observed
from grove.dashboard.state.recent_events import REPORTERS, EventStore, RecentEvents
from grove.dashboard.state.visibility import Unread
from grove.explanation.operator_lease import Leases
from grove.kube.cache.cache import Cache
from grove.kube.cache.crd_watch import CrdWatch
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import DEVICE_CLASSES, NODES, PODS
from grove.plan.timestamps import rfc3339

_INSTALL = "install the CRDs with grove crds | kubectl apply --server-side -f -"


class Watches:
    """Fills the caches of a board."""

    def __init__(
        self, client: Client, observed: Observed, events: RecentEvents, namespaces: Sequence[str]
    ) -> None:
        self._client, self._observed = client, observed
        self._crd_watch = None if namespaces else CrdWatch()
        caches = observed.caches
        self._needed: tuple[Cache[Any], ...] = (
            caches.sets, caches.groups, caches.cliques, caches.gangs, caches.pods,
        )  # fmt: skip
        self._optional: tuple[Cache[Any], ...] = (
            observed.graphs, observed.lease_cache, caches.topologies, caches.topology_bindings,
            caches.claim_templates,
        )  # fmt: skip
        for cache in (*self._needed, observed.graphs, caches.claim_templates):
            cache.watch_only(namespaces)
        stores = [
            EventStore(events, reporter, namespace)
            for namespace in (namespaces or (None,))
            for reporter in REPORTERS
        ]
        self._reflectors: list[tuple[Any, Reflector[Any, Any]]] = [
            *((store, self._reflector(store)) for cache in self._needed for store in cache.stores),
            *((store, self._reflector(store, True)) for cache in self._optional for store in cache.stores),
            *((store, self._reflector(store, True)) for store in stores),
        ]
        self._interrupted: tuple[float, str] | None = None

    def _reflector(self, store: Any, optional: bool = False) -> Reflector[Any, Any]:
        return Reflector(self._client, store, crd_watch=self._crd_watch, optional=optional)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch until the block is left."""
        client, caches = self._client, self._observed.caches
        runs = [reflector.run() for _, reflector in self._reflectors]
        if self._crd_watch is not None:
            runs.append(self._crd_watch.run(client))
        if self._observed.view is not None and self._crd_watch is not None:
            assert caches.cluster_pods is not None
            assert caches.devices is not None
            runs += [
                caches.nodes.run(client),
                caches.cluster_pods.run(client),
                caches.devices.run(client, self._crd_watch),
            ]
        tasks = [asyncio.create_task(run) for run in runs]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _problems(self) -> Iterator[Problem]:
        """Why watches are interrupted."""
        return (each for each in self._texts() if each.text)

    def _texts(self) -> Iterator[Problem]:
        """What each watch says, which is nothing as long as it is not interrupted."""
        for store, reflector in self._reflectors:
            yield Problem(store.resource.label, reflector.problem, store.namespace or "", reflector.forbidden)
        caches = self._observed.caches
        if self._observed.view is not None:
            assert caches.cluster_pods is not None
            assert caches.devices is not None
            yield Problem(NODES.label, caches.nodes.problem, forbidden=caches.nodes.forbidden)
            yield Problem(PODS.label, caches.cluster_pods.problem, forbidden=caches.cluster_pods.forbidden)
            yield Problem(DEVICE_CLASSES.label, caches.devices.problem, forbidden=caches.devices.forbidden)

    @property
    def settled(self) -> bool:
        """Whether everything is listed that can be."""
        return not any(self._being_read())

    def _being_read(self) -> Iterator[str]:
        """The kinds whose first list is not complete, without a problem that says why."""
        for store, reflector in self._reflectors:
            if not (store.synced_or_absent.is_set() or reflector.problem):
                yield store.resource.label
        caches, view = self._observed.caches, self._observed.view
        if view is not None and not view.synced:
            assert caches.cluster_pods is not None
            assert caches.devices is not None
            if not (caches.nodes.synced or caches.nodes.problem):
                yield NODES.label
            if not (caches.cluster_pods.synced.is_set() or caches.cluster_pods.problem):
                yield PODS.label
            if not (caches.devices.synced or caches.devices.problem):
                yield DEVICE_CLASSES.label

    def connection(self, now: float) -> Connection:
        """Whether the watches are connected. Most interruptions end after a moment, and are not shown."""
        found = (each.text for each in self._problems() if not each.is_forbidden)
        if (problem := next(found, "")) == "":
            self._interrupted = None
            return Connection()
        # The first problem stays: that of another watch, or of another attempt, says nothing more.
        since, first = self._interrupted = self._interrupted or (now, problem)
        if now - since < timing.DASHBOARD_CHECK:
            return Connection()
        return Connection(connected=False, problem=first, since=rfc3339(since))

    def leases(self) -> Leases:
        """The Leases of operators; None if they cannot be listed."""
        cache = self._observed.lease_cache
        if any(reflector.forbidden for store, reflector in self._reflectors if store in cache.stores):
            return None
        return tuple(cache) if cache.synced.is_set() and not cache.undecodable else None

    def unread(self) -> Unread:
        """What could not be read."""
        problems = dict.fromkeys(each for each in self._problems() if each.is_forbidden)
        kinds = [f"{label}: still being read" for label in self._being_read()]
        kinds += (
            f"{cache.resource.label}: not served by the cluster: {_INSTALL}"
            for cache in self._needed
            if cache.synced_or_absent.is_set() and not cache.synced.is_set()
        )
        undecodable = {
            cache.resource.label: frozenset(cache.undecodable)
            for cache in (*self._needed, *self._optional)
            if cache.undecodable
        }
        return Unread(tuple(problems), undecodable, tuple(kinds))
