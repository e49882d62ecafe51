"""The executor's view of the caches: the type that replies are decoded as, and where they are stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from grove.kube.cache.cache import Cache
from grove.kube.client.decoding import Object
from grove.kube.client.resource import Resource


class ObjectStore(Protocol):
    """Stores the results of writes and reads."""

    def type_of(self, resource: Resource) -> type[Any]:
        """The type that objects of this resource are decoded as; it has `metadata`."""
        ...

    def put(self, resource: Resource, obj: Any) -> bool:
        """Store an object from the server. Returns whether it is cached now, so that its DELETED event will
        be seen."""
        ...

    def mark_deleted(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Record that the object with this UID does not exist any more."""
        ...


class CacheStore:
    """The caches of several resources as one store. Objects of resources without a cache are not kept."""

    def __init__(self, caches: Iterable[Cache[Any]] = ()) -> None:
        self._caches = {cache.resource: cache for cache in caches}

    def type_of(self, resource: Resource) -> type[Any]:
        """The cache's type; without a cache, a type with metadata only."""
        cache = self._caches.get(resource)
        return Object if cache is None else cache.as_type

    def put(self, resource: Resource, obj: Any) -> bool:
        """Put the object into its cache, which ignores it if it has a newer one."""
        cache = self._caches.get(resource)
        if cache is None:
            return False
        cache.apply_reply(obj)
        cached = cache.get(obj.metadata.namespace, obj.metadata.name)
        return cached is not None and cached.metadata.uid == obj.metadata.uid

    def mark_deleted(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Remove the object from its cache."""
        cache = self._caches.get(resource)
        if cache is not None:
            cache.mark_deleted(namespace, name, uid)
