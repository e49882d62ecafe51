"""Which change wakes which key. A change of status alone wakes nobody but those whose pods it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grove.api.sets import PodCliqueSet
from grove.kube.cache import Cache, Handler, HasMetadata
from grove.operator.caches import BY_TOPOLOGY, Caches
from grove.operator.keys import Key, ReplicaKey, SetKey, replica_of

Wake = Callable[[Key], None]


def wire(caches: Caches, wake: Wake) -> None:
    """From now on, changes wake keys; what is there already is news to whoever begins now."""
    waker = _Waker(caches, wake)
    _follow(caches.sets, waker.on_set)
    for cache in (caches.groups, caches.cliques, caches.gangs):
        _follow(cache, waker.on_part)
    for uncounted in (caches.pods, caches.services):  # their generation does not count changes of the spec
        _follow(uncounted, waker.on_any)
    for topologies in (caches.topologies, caches.bindings):
        _follow(topologies, waker.on_topology)


def _follow(cache: Cache[Any], tell: Handler[Any]) -> None:
    for found in cache:
        tell(None, found)
    cache.subscribe(tell)


class _Waker:
    def __init__(self, caches: Caches, wake: Wake) -> None:
        self._caches, self._wake = caches, wake

    def on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        """All of its replicas, those that are too many included, if more than its status has changed."""
        if old is not None and new is not None and not _changed(old, new):
            return
        found = new or old
        assert found is not None
        self._wake_all(found, new.spec.replicas if new else 0)

    def on_topology(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """The sets that mean it, all of their replicas, if its levels may have changed."""
        if old is not None and new is not None and _edition(old) == _edition(new):
            return
        found = new or old
        assert found is not None
        for workload in self._caches.sets.by_index(BY_TOPOLOGY, found.metadata.name):
            self._wake_all(workload, workload.spec.replicas)

    def _wake_all(self, workload: PodCliqueSet, count: int) -> None:
        key = SetKey(workload.metadata.namespace, workload.metadata.name)
        self._wake(key)
        for index in {*range(count), *self._caches.replicas_of(key)}:
            self._wake(ReplicaKey(key.namespace, key.name, index))

    def on_part(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        if old is None or new is None or _changed(old, new):
            self.on_any(old, new)

    def on_any(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        for found in (old, new):
            if found is not None and (key := replica_of(found.metadata)):
                self._wake(key)


def _edition(found: HasMetadata) -> tuple[str, int]:
    return found.metadata.uid, found.metadata.generation


def _changed(old: HasMetadata, new: HasMetadata) -> bool:
    """The generation counts changes of the spec; of the metadata, nobody counts the changes."""
    before, after = old.metadata, new.metadata
    return (
        before.generation != after.generation
        or before.uid != after.uid
        or before.deletion_timestamp != after.deletion_timestamp
        or before.labels != after.labels
        or before.annotations != after.annotations
        or before.finalizers != after.finalizers
        or before.owner_references != after.owner_references
    )
