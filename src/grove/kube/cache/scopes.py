"""The namespaces of a cache that are watched one by one, where RBAC permits no watch of all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Generic, Protocol

from grove.kube.cache.store import Decoded, Kept, Store
from grove.kube.client.resource import Resource
from grove.kube.client.undecodable import Undecodable


class Scope:
    """How far one watch is: that of all namespaces, or of one."""

    def __init__(self) -> None:
        self.watch_version = 0
        self.tombstones: dict[str, int] = {}
        """UIDs of objects that were deleted by a reply, with their last version."""
        self.synced = asyncio.Event()
        self.synced_or_absent = asyncio.Event()

    def advance(self, version: int) -> None:
        """The watch has sent everything up to this version."""
        self.watch_version = max(self.watch_version, version)

    def set_synced(self, version: int) -> None:
        """Everything up to this version is listed."""
        self.watch_version = version
        self.synced.set()
        self.synced_or_absent.set()

    def set_absent(self) -> None:
        """The resource is not served."""
        self.watch_version = 0
        self.tombstones.clear()
        self.synced.clear()
        self.synced_or_absent.set()


class ScopedStore(Store[Decoded, Kept], Protocol[Decoded, Kept]):
    """A cache whose namespaces can be filled one by one."""

    def replace(
        self,
        listed: Iterable[Kept],
        list_version: str,
        undecodable: Iterable[Undecodable] = (),
        namespace: str = "",
    ) -> None: ...

    def apply_undecodable(self, kind: str, found: Undecodable, namespace: str = "") -> None: ...

    def apply_bookmark(self, version: str, namespace: str = "") -> None: ...

    def clear(self, namespace: str = "") -> None: ...


class NamespaceStore(Generic[Decoded, Kept]):
    """One namespace of a cache, as its reflector fills it."""

    def __init__(self, cache: ScopedStore[Decoded, Kept], namespace: str, scope: Scope) -> None:
        self._cache, self._scope, self._namespace = cache, scope, namespace

    @property
    def namespace(self) -> str | None:
        return self._namespace

    @property
    def resource(self) -> Resource:
        return self._cache.resource

    @property
    def as_type(self) -> type[Decoded]:
        return self._cache.as_type

    @property
    def labels(self) -> str:
        return self._cache.labels

    @property
    def fields(self) -> str:
        return self._cache.fields

    @property
    def synced(self) -> asyncio.Event:
        return self._scope.synced

    @property
    def synced_or_absent(self) -> asyncio.Event:
        return self._scope.synced_or_absent

    def __len__(self) -> int:
        return len(self._cache)

    def compact(self, new: Decoded) -> Kept:
        return self._cache.compact(new)

    def apply_event(self, kind: str, new: Decoded) -> None:
        self._cache.apply_event(kind, new)

    def apply_undecodable(self, kind: str, found: Undecodable) -> None:
        self._cache.apply_undecodable(kind, found, self._namespace)

    def apply_bookmark(self, version: str) -> None:
        self._cache.apply_bookmark(version, self._namespace)

    def mark_unlistable(self, reason: str) -> None:
        self._cache.mark_unlistable(reason)

    def replace(
        self, listed: Iterable[Kept], list_version: str, undecodable: Iterable[Undecodable] = ()
    ) -> None:
        self._cache.replace(listed, list_version, undecodable, self._namespace)

    def clear(self) -> None:
        self._cache.clear(self._namespace)
