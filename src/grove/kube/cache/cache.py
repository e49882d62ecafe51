"""The informer cache of one resource: what the watch sent, and never behind the operator's own writes.

A controller that plans on a cache behind its own writes creates everything twice. So the executor puts the
reply of each write into the cache at once, and these rules decide between the two sources:

- An entry is replaced only by a newer resourceVersion (they are comparable within a resource).
- A relist never replaces or removes an entry that is newer than the list.
- A reply about an object that is not cached is stored only if it is newer than everything that the watch
  has sent: if it is older, the watch has already reported the deletion.
- A delete answered with a terminating object leaves it cached. Answered with a Status it leaves a tombstone,
  so that older events and replies cannot add the object again; DELETED removes the tombstone.
- An object that cannot be decoded is skipped: its last decodable state stays, and `undecodable` names it.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from grove.api.meta import ObjectMeta
from grove.kube import metrics
from grove.kube.cache.index import Indexes, IndexFunction, Key
from grove.kube.cache.interning import intern_fields
from grove.kube.cache.scopes import NamespaceStore, Scope
from grove.kube.cache.store import Store
from grove.kube.client import label_selector
from grove.kube.client.resource import Resource
from grove.kube.client.undecodable import Undecodable, log_skipped
from grove.kube.errors import DecodeError
from grove.logger import get_logger

log = get_logger("grove.kube")
ALL = ""
"""All namespaces, and objects without one."""


class HasMetadata(Protocol):
    """Any object of the API."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=HasMetadata)
Handler = Callable[[T | None, T | None], None]


class Cache(Generic[T]):
    """The objects of one resource, by namespace and name, by secondary index, and up to date. `projection`:
    the part of an object that is kept, at least identity and version, where little of many is read."""

    def __init__(
        self,
        resource: Resource,
        as_type: type[T],
        *,
        indexes: Mapping[str, IndexFunction[T]] | None = None,
        namespace: str | None = None,
        labels: label_selector.Labels = "",
        fields: str = "",
        projection: Callable[[T], T] | None = None,
    ) -> None:
        self.resource, self.as_type, self.namespace = resource, as_type, namespace
        self.labels = label_selector.render(labels)
        self.fields = fields  # `metadata.name=x`: RBAC may permit the watch for one name only
        self._projection = projection  # idempotent: the objects of a list are projected as they arrive
        self.synced = asyncio.Event()  # everything that existed at the start of the watch is cached
        self.synced_or_absent = asyncio.Event()  # synced, or the cluster does not serve the resource
        self.list_error = ""  # why the server refuses to list the resource; empty once it is synced or absent
        self._matches_selector = label_selector.parse(labels)
        self._objects: dict[Key, T] = {}
        self._indexes = Indexes(indexes or {}, resource.label)
        self._handlers: list[Handler[T]] = []
        self._sync_handlers: list[Callable[[], None]] = []
        self.undecodable: dict[Key, Undecodable] = {}
        """Objects that exist and were skipped. One entry without a name stands for all without a name."""
        self._undecodable_handlers: list[Callable[[Undecodable], None]] = []
        self._scopes = {ALL: Scope()}
        self.applying_reply = False
        """Whether the handlers are called for the reply of an own request, and not for a watch event."""
        weak, gauge = weakref.ref(self), metrics.cache_objects.labels(resource.label)  # may outlive the cache
        gauge.set_function(lambda: len(alive) if (alive := weak()) is not None else 0)

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def get(self, namespace: str, name: str) -> T | None:
        """The object, or None. Cluster-scoped objects have the namespace ''."""
        return self._objects.get((namespace, name))

    def by_index(self, index: str, value: Hashable) -> list[T]:
        """The objects for which the named index function yields the value."""
        return [self._objects[key] for key in self._indexes.get(index, value)]

    def watch_only(self, namespaces: Iterable[str]) -> None:
        """Watch these namespaces, each by itself: RBAC permits no others. None: all of them, as for what has
        no namespace. Called before the first watch."""
        if self.resource.namespaced:
            self._scopes = {namespace: Scope() for namespace in namespaces} or self._scopes

    @property
    def stores(self) -> tuple[Store[T, T], ...]:
        """What reflectors fill: the cache, or each of its namespaces."""
        if ALL in self._scopes:
            return (self,)
        return tuple(NamespaceStore(self, namespace, scope) for namespace, scope in self._scopes.items())

    def subscribe(self, handler: Handler[T]) -> Callable[[], None]:
        """Call `handler(old, new)` on each change; None: added or removed. Returns how to unsubscribe."""
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    def on_undecodable(self, handler: Callable[[Undecodable], None]) -> None:
        """Call `handler` when an object is added to `undecodable`, and when it is removed from it."""
        self._undecodable_handlers.append(handler)

    def on_synced_or_absent(self, handler: Callable[[], None]) -> None:
        """Call `handler` whenever the cache becomes synced, or the resource turns out not to be served, or
        not to be listable."""
        self._sync_handlers.append(handler)

    # Replies of own requests. Called by the executor only.

    def apply_reply(self, new: T) -> bool:
        """Store the reply of a write or of a GET. Returns whether that changed the cache."""
        old, version, scope = (
            self._objects.get(_key(new)),
            version_of(new),
            self._scope(new.metadata.namespace),
        )
        if scope is None or new.metadata.uid in scope.tombstones:
            return False
        if _is_deleted(new.metadata):  # its version may be that of the object before the write
            self.mark_deleted(new.metadata.namespace, new.metadata.name, new.metadata.uid)
            return old is not None
        if version <= (version_of(old) if old is not None else scope.watch_version):
            return False
        self.applying_reply = True
        try:
            if not self._matches_selector(new.metadata.labels):
                return self._remove(_key(new))
            self._store(old, new)
        finally:
            self.applying_reply = False
        return True

    def apply_delete_reply(self, namespace: str, name: str, uid: str, reply: T | None) -> None:
        """Store the reply of a delete: the terminating object, or None if it is gone. An object without a
        deletionTimestamp is the last state of one that was deleted at once."""
        if reply is not None and reply.metadata.deletion_timestamp:
            self.apply_reply(reply)
            return
        old = self._objects.get((namespace, name))
        if old is not None and old.metadata.uid == uid and (scope := self._scope(namespace)) is not None:
            scope.tombstones[uid] = version_of(old)
            self._remove((namespace, name))

    def mark_deleted(self, namespace: str, name: str, uid: str) -> None:
        """A read showed that the object with this UID does not exist (any more)."""
        self.apply_delete_reply(namespace, name, uid, None)

    # What the watch sends. Called by the reflector only.

    def apply_event(self, kind: str, new: T) -> None:
        """Apply one watch event."""
        key, uid, version = _key(new), new.metadata.uid, version_of(new)
        old, scope = self._objects.get(key), self._scopes.get(ALL) or self._scopes[new.metadata.namespace]
        if self.undecodable:
            self._clear_undecodable(key)
        if kind == "DELETED":
            scope.tombstones.pop(uid, None)
            if old is not None and (version_of(old) <= version or old.metadata.uid == uid == ""):
                self._remove(key)
        elif uid not in scope.tombstones and (old is None or version_of(old) < version):
            self._store(old, new)
        scope.advance(version)

    def apply_undecodable(self, kind: str, found: Undecodable, namespace: str = ALL) -> None:
        """Apply one watch event about an object that cannot be decoded, perhaps not even its namespace."""
        old, version = self._objects.get(found.key), _parse_version(found.metadata.resource_version)
        scope = self._scopes[namespace]
        newer = old is not None and version_of(old) > version  # a reply of our own, which the watch sends yet
        if old is not None and not newer and (kind == "DELETED" or old.metadata.uid != found.metadata.uid):
            self._remove(found.key)
        if kind == "DELETED":
            scope.tombstones.pop(found.metadata.uid, None)
            self._clear_undecodable(found.key)
        elif not newer:
            self._add_undecodable(found)
        scope.advance(version)

    def apply_bookmark(self, version: str, namespace: str = ALL) -> None:
        """A bookmark: the watch has sent everything up to this version."""
        self._scopes[namespace].advance(_parse_version(version))

    def replace(
        self,
        listed: Iterable[T],
        list_version: str,
        undecodable: Iterable[Undecodable] = (),
        namespace: str = ALL,
    ) -> None:
        """Apply a whole list, of everything or of one namespace, read at the given version."""
        scope = self._scopes[namespace]
        version, skipped = _parse_version(list_version), {found.key: found for found in undecodable}
        known = ((key, each, self._objects.get(key)) for key, each in skipped.items())
        kept = {key for key, each, old in known if old and old.metadata.uid == each.metadata.uid}
        uids: set[str] = set()
        for new in listed:
            key = _key(new)
            kept.add(key)
            uids.add(new.metadata.uid)
            old = self._objects.get(key)
            if new.metadata.uid not in scope.tombstones and (
                old is None or version_of(old) < version_of(new)
            ):
                self._store(old, new)
        listed_keys = _within(self._objects, namespace)
        gone = [key for key in listed_keys if key not in kept and version_of(self._objects[key]) <= version]
        for key in gone:
            self._remove(key)
        scope.tombstones = {
            uid: seen for uid, seen in scope.tombstones.items() if uid in uids or seen > version
        }
        for key in _within(self.undecodable, namespace):
            if key not in skipped:
                self._clear_undecodable(key)
        for key, each in skipped.items():
            if (old := self._objects.get(key)) is None or version_of(old) <= version:
                self._add_undecodable(each)
        scope.set_synced(version)
        self._combine_scopes()

    def clear(self, namespace: str = ALL) -> None:
        """The cluster does not serve this resource (any more): no such objects can exist."""
        for key in _within(self._objects, namespace):
            self._remove(key)
        for key in _within(self.undecodable, namespace):
            self._clear_undecodable(key)
        self._scopes[namespace].set_absent()
        self._combine_scopes()

    def mark_unlistable(self, reason: str) -> None:
        """The server serves this resource and refuses to list it. A synced cache is kept as it is."""
        if self.synced.is_set() or reason == self.list_error:
            return
        self.list_error = reason
        self.synced_or_absent.clear()
        for handler in self._sync_handlers:
            self._call(self.resource.label, handler)

    def _combine_scopes(self) -> None:
        """The cache is synced when each of its namespaces is."""
        scopes, synced = self._scopes.values(), self.synced.is_set()
        if all(scope.synced.is_set() for scope in scopes):
            self.synced.set()
        else:
            self.synced.clear()
        if all(scope.synced_or_absent.is_set() for scope in scopes):
            self._set_synced_or_absent(synced != self.synced.is_set() or not self.synced_or_absent.is_set())

    def _set_synced_or_absent(self, changed: bool) -> None:
        self.list_error = ""
        self.synced_or_absent.set()
        for handler in self._sync_handlers if changed else ():
            self._call(self.resource.label, handler)

    def _add_undecodable(self, found: Undecodable) -> None:
        """Remember an object that cannot be decoded; an unchanged reason is not logged again."""
        known = self.undecodable.get(found.key)
        self.undecodable[found.key] = found
        if known is None or known.reason != found.reason:
            log_skipped(found, self.resource)
        if known is None or (known.reason, known.metadata.labels) != (found.reason, found.metadata.labels):
            for handler in self._undecodable_handlers:
                self._call("/".join(found.key), handler, found)

    def _clear_undecodable(self, key: Key) -> None:
        """Forget an object that can be decoded again, or is gone."""
        if (found := self.undecodable.pop(key, None)) is not None:
            for handler in self._undecodable_handlers:
                self._call("/".join(key), handler, found)

    def _scope(self, namespace: str) -> Scope | None:
        """The scope of the objects of a namespace; None if it is not watched."""
        if self.namespace is not None and namespace != self.namespace:
            return None
        return self._scopes.get(ALL) or self._scopes.get(namespace)

    def compact(self, new: T) -> T:
        """What is kept of an object: its projection, with values that many objects share stored once."""
        return intern_fields(new if self._projection is None else self._projection(new))

    def _store(self, old: T | None, new: T) -> None:
        key = _key(new := self.compact(new))
        self._objects[key] = new
        if self.undecodable:
            self._clear_undecodable(key)
        self._indexes.update(key, old, new)
        self._notify(old, new)

    def _remove(self, key: Key) -> bool:
        old = self._objects.pop(key, None)
        if old is None:
            return False
        self._indexes.update(key, old, None)
        self._notify(old, None)
        return True

    def _notify(self, old: T | None, new: T | None) -> None:
        seen = new if new is not None else old
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception as bug:
                self._handler_failed("/".join(_key(seen)) if seen is not None else "", bug)

    def _call(self, key: str, handler: Callable[..., None], *arguments: object) -> None:
        try:
            handler(*arguments)
        except Exception as bug:
            self._handler_failed(key, bug)

    def _handler_failed(self, key: str, bug: Exception) -> None:
        """Log and count the failure of one handler: the other handlers still run, and the watch goes on."""
        metrics.handler_failures_total.labels(self.resource.label).inc()
        log.error("handler failed", key=key, action="notify", reason=str(bug), exc_info=bug)


def _within(keys: Iterable[Key], namespace: str) -> list[Key]:
    """Those of the keys that are in a namespace."""
    return [key for key in keys if namespace in (ALL, key[0])]


def _key(found: HasMetadata) -> Key:
    return found.metadata.namespace, found.metadata.name


def _is_deleted(metadata: ObjectMeta) -> bool:
    """Whether the write that returned this deleted the object: it removed the last finalizer."""
    terminated = metadata.deletion_timestamp is not None and metadata.deletion_grace_period_seconds == 0
    return terminated and not metadata.finalizers


def version_of(found: HasMetadata) -> int:
    """The resourceVersion as a number. Kubernetes 1.35 documents that they are comparable."""
    return _parse_version(found.metadata.resource_version)


def _parse_version(version: str) -> int:
    try:
        return int(version) if version else 0
    except ValueError:
        raise DecodeError(
            f"resourceVersion {version!r} is not a number: this server is not supported"
        ) from None
