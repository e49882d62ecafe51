"""Which change wakes which key. A change of status alone wakes nobody but those whose pods it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grove.api.sets import PodCliqueSet
from grove.kube.cache import Cache, Handler, HasMetadata
from grove.operator.caches import Caches
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


def _follow(cache: Cache[Any], tell: Handler[Any]) -> None:
    for found in cache:
        tell(None, found)
    cache.subscribe(tell)


class _Waker:
    def __init__(self, caches: Caches, wake: Wake) -> None:
        self._caches, self._wake = caches, wake

    def on_set(self, old: PodCliqueSet | None, new: PodCliqueSet | None) -> None:
        """All of its replicas, those that are too many included, if more than its status has changed; of the
        status it is the replica whose turn it is to be updated that counts."""
        if old is not None and new is not None and not _changed(old, new):
            for index in {index for index, _ in _turns(old) ^ _turns(new)}:
                self._wake(ReplicaKey(new.metadata.namespace, new.metadata.name, index))
            return
        found = new or old
        assert found is not None
        key = SetKey(found.metadata.namespace, found.metadata.name)
        self._wake(key)
        count = new.spec.replicas if new else 0
        for index in {*range(count), *self._caches.replicas_of(key)}:
            self._wake(ReplicaKey(key.namespace, key.name, index))

    def on_part(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        if old is None or new is None or _changed(old, new):
            self.on_any(old, new)

    def on_any(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        for found in (old, new):
            if found is not None and (key := replica_of(found.metadata)):
                self._wake(key)


def _turns(found: PodCliqueSet) -> set[tuple[int, str]]:
    """Whose turn it is, and for which template."""
    progress = found.status.update_progress
    entries = progress.currently_updating if progress else ()
    return {(entry.replica_index, found.status.current_generation_hash) for entry in entries}


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
