"""The labels of nodes, as far as topologies name them. Nothing else of a node is kept, and without a topology
nobody watches them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from grove.api.cluster import Bare
from grove.api.meta import ObjectMeta
from grove.kube.cache import Cache
from grove.kube.client import Client
from grove.kube.reflector import Reflector
from grove.kube.resource import NODES


class Nodes:
    """The nodes of the cluster, seen through the label keys that somebody wants."""

    def __init__(self) -> None:
        self._keys: frozenset[str] = frozenset()
        self._more = asyncio.Event()
        self._seen: _Slim | None = None
        self._listeners: list[Callable[[], None]] = []

    def want(self, keys: Iterable[str]) -> None:
        """Keep an eye on these labels, too."""
        if not self._keys.issuperset(wanted := frozenset(keys)):
            self._keys |= wanted
            self._more.set()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a label that is wanted changes somewhere."""
        self._listeners.append(listener)

    def labels(self, keys: Iterable[str]) -> tuple[Mapping[str, str], ...] | None:
        """The labels of every node; None if those were not looked at yet."""
        if self._seen is None or not self._seen.kept.issuperset(keys):
            return None
        return tuple(node.metadata.labels for node in self._seen)

    async def run(self, client: Client) -> None:
        """Watch, as soon as there is something to watch for, until cancelled. What was not kept is not there:
        with more keys the nodes are listed anew, and what is known serves until they are."""
        while True:
            await self._more.wait()
            self._more.clear()
            cache = _Slim(self._keys)
            watching = asyncio.create_task(Reflector(client, cache).run())
            try:
                await self._until_known_or_outdated(cache)
                await self._more.wait()
            finally:
                watching.cancel()
                await asyncio.wait({watching})

    async def _until_known_or_outdated(self, cache: _Slim) -> None:
        known, outdated = (asyncio.create_task(event.wait()) for event in (cache.synced, self._more))
        try:
            await asyncio.wait({known, outdated}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            known.cancel()
            outdated.cancel()
        if cache.synced.is_set():
            self._seen = cache
            cache.subscribe(self._changed)
            self._tell()

    def _changed(self, old: Bare | None, new: Bare | None) -> None:
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


class _Slim(Cache[Bare]):
    """Keeps of each node its name, its version and the labels that matter."""

    def __init__(self, kept: frozenset[str]) -> None:
        super().__init__(NODES, Bare)
        self.kept = kept

    def _store(self, old: Bare | None, new: Bare) -> None:
        meta = new.metadata
        labels = {name: value for name, value in meta.labels.items() if name in self.kept}
        slim = ObjectMeta(meta.name, uid=meta.uid, resource_version=meta.resource_version, labels=labels)
        super()._store(old, Bare(slim))
