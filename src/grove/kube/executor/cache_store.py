"""What the executor needs of a cache: the type to read replies as, and a place to put them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from grove.kube.cache.cache import Cache
from grove.kube.client.decoding import Object
from grove.kube.client.resource import Resource


class ObjectStore(Protocol):
    """Learns what writes and reads have shown."""

    def type_of(self, resource: Resource) -> type[Any]:
        """The type that objects of this resource are read as; it has `metadata`."""
        ...

    def put(self, resource: Resource, obj: Any) -> bool:
        """Learn of an object as the server has it. Says whether it is held now and its end will be told."""
        ...

    def mark_deleted(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Learn that the object with this UID does not exist any more."""
        ...


class CacheStore:
    """The caches of several resources as one store. Resources without a cache are read and forgotten."""

    def __init__(self, caches: Iterable[Cache[Any]] = ()) -> None:
        self._caches = {cache.resource: cache for cache in caches}

    def type_of(self, resource: Resource) -> type[Any]:
        """The cache's type; without a cache, any object will do."""
        cache = self._caches.get(resource)
        return Object if cache is None else cache.as_type

    def put(self, resource: Resource, obj: Any) -> bool:
        """Put the object into its cache, which knows better if it has something newer."""
        cache = self._caches.get(resource)
        if cache is None:
            return False
        cache.apply_reply(obj)
        held = cache.get(obj.metadata.namespace, obj.metadata.name)
        return held is not None and held.metadata.uid == obj.metadata.uid

    def mark_deleted(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Take the object out of its cache."""
        cache = self._caches.get(resource)
        if cache is not None:
            cache.mark_deleted(namespace, name, uid)
