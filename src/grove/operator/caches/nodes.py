"""The labels of nodes that topologies use as levels, for the status of topologies.

Nothing else of a node is kept, and without a topology nodes are not watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import NODES


class Nodes:
    """The nodes of the cluster, with the labels of the required keys only."""

    def __init__(self) -> None:
        self._keys: frozenset[str] = frozenset()
        self._keys_added = asyncio.Event()
        self._cache: _NodeLabelCache | None = None
        self._listeners: list[Callable[[], None]] = []

    def require(self, keys: Iterable[str]) -> None:
        """Watch the labels of these keys, too."""
        if not self._keys.issuperset(required := frozenset(keys)):
            self._keys |= required
            self._keys_added.set()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a required label of any node changes."""
        self._listeners.append(listener)

    def labels(self, keys: Iterable[str]) -> tuple[Mapping[str, str], ...] | None:
        """The labels of every node; None if these keys are not listed yet."""
        if self._cache is None or not self._cache.kept_keys.issuperset(keys):
            return None
        return tuple(node.metadata.labels for node in self._cache)

    async def run(self, client: Client) -> None:
        """Watch nodes as soon as a key is required, until cancelled. The cache has dropped all other labels,
        so with more keys the nodes are listed again; until that is done, the former cache is used."""
        while True:
            await self._keys_added.wait()
            self._keys_added.clear()
            cache = _NodeLabelCache(self._keys)
            watching = asyncio.create_task(Reflector(client, cache).run())
            try:
                await self._wait_for_sync_or_new_keys(cache)
                await self._keys_added.wait()
            finally:
                watching.cancel()
                await asyncio.wait({watching})

    async def _wait_for_sync_or_new_keys(self, cache: _NodeLabelCache) -> None:
        known, outdated = (asyncio.create_task(event.wait()) for event in (cache.synced, self._keys_added))
        try:
            await asyncio.wait({known, outdated}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            known.cancel()
            outdated.cancel()
        if cache.synced.is_set():
            self._cache = cache
            cache.subscribe(self._changed)
            self._notify()

    def _changed(self, old: PartialObjectMetadata | None, new: PartialObjectMetadata | None) -> None:
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self._notify()

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()


class _NodeLabelCache(Cache[PartialObjectMetadata]):
    """Keeps of each node its name, UID, resourceVersion and the required labels."""

    def __init__(self, kept_keys: frozenset[str]) -> None:
        super().__init__(NODES, PartialObjectMetadata)
        self.kept_keys = kept_keys

    def _store(self, old: PartialObjectMetadata | None, new: PartialObjectMetadata) -> None:
        meta = new.metadata
        labels = {name: value for name, value in meta.labels.items() if name in self.kept_keys}
        slim = ObjectMeta(meta.name, uid=meta.uid, resource_version=meta.resource_version, labels=labels)
        super()._store(old, PartialObjectMetadata(slim))
