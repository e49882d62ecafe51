"""Translates each kind of intent into one request, sends it, and stores the reply in the cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from grove import timing
from grove.api.intents import Create, Delete, Intent, Patch, PatchType, Status
from grove.kube.client.client import Client, RequestLimits
from grove.kube.client.resource import Resource
from grove.kube.executor.cache_store import ObjectStore
from grove.kube.executor.deferred_values import DeferredValues
from grove.kube.executor.write_latency import WriteClass

_VERBS = {Create: "create", Patch: "patch", Status: "patch", Delete: "delete"}


def is_conditional(intent: Intent) -> bool:
    """Whether the server rejects the write if it arrives too late (see docs/decisions/leader-election.md):
    the name of a create exists, the UID or resourceVersion of a patch or the UID of a delete is another."""
    match intent:
        case Create():
            return True
        case Delete():
            return bool(intent.uid)
        case Patch() | Status():
            metadata = intent.body.get("metadata", {}) if isinstance(intent.body, dict) else {}
            return bool(metadata.get("resourceVersion") or metadata.get("uid"))


class WriteReply(Struct, frozen=True, gc=False):
    """The reply of the server: the object's name, and its UID if the object still exists."""

    name: str = ""
    uid: str = ""


class ResourceMapper:
    """Maps the API version and kind of an intent to a resource."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._resources = {(resource.api_version, resource.kind): resource for resource in resources}

    def resource_of(self, intent: Intent) -> Resource:
        """The resource that an intent is about."""
        about = intent.target
        resource = self._resources.get((about.api_version, about.kind))
        if resource is None:
            raise LookupError(
                f"{intent.id}: no resource is known for {about.api_version} {about.kind}: register it"
            )
        return resource


class Writer:
    """Sends intents once, raises the server's errors, and puts the replies into the store."""

    def __init__(self, client: Client, mapper: ResourceMapper, store: ObjectStore) -> None:
        self._client = client
        self._mapper = mapper
        self._store = store

    def write_class(self, intent: Intent) -> WriteClass:
        """The class of writes that the intent belongs to."""
        resource = self._mapper.resource_of(intent).label
        if isinstance(intent, Status):
            resource += "/status"  # admission rules name the subresource: one may be slow without the other
        return WriteClass(_VERBS[type(intent)], resource, intent.target.namespace)

    async def send(
        self, intent: Intent, deferred: DeferredValues, timeout: float = timing.REQUEST_TIMEOUT
    ) -> WriteReply:
        """Send the intent, with its deferred values resolved."""
        resource = self._mapper.resource_of(intent)
        name = deferred.resolve(intent.target.name)
        limits = RequestLimits(timeout, is_conditional(intent))
        if isinstance(intent, Delete):
            return await self._delete(resource, intent, name, limits)
        if isinstance(intent, Create):
            created = await self._client.create(
                resource,
                deferred.encode(intent.body),
                as_type=self._store.type_of(resource),
                namespace=intent.target.namespace or None,
                dry_run=intent.dry_run,
                limits=limits,
            )
            return WriteReply(name) if intent.dry_run else self._cache_reply(resource, created)
        return await self._patch(resource, intent, name, deferred, limits)

    async def _patch(
        self,
        resource: Resource,
        intent: Patch | Status,
        name: str,
        deferred: DeferredValues,
        limits: RequestLimits,
    ) -> WriteReply:
        kind, subresource = PatchType.MERGE, "status"
        if isinstance(intent, Patch):
            kind, subresource = intent.type, intent.subresource
        patched = await self._client.patch(
            resource,
            name,
            deferred.encode(intent.body),
            as_type=dict if subresource not in ("", "status") else self._store.type_of(resource),
            namespace=intent.target.namespace or None,
            kind=kind.value,
            subresource=subresource,
            limits=limits,
        )
        # Other subresources (scale, ...) answer with an object of another kind, which is not the store's.
        return WriteReply(name) if isinstance(patched, dict) else self._cache_reply(resource, patched)

    async def _delete(
        self, resource: Resource, intent: Delete, name: str, limits: RequestLimits
    ) -> WriteReply:
        namespace = intent.target.namespace
        deleted = await self._client.delete(
            resource,
            name,
            as_type=self._store.type_of(resource),
            namespace=namespace or None,
            uid=intent.uid,
            propagation="Background",
            grace_seconds=intent.grace_seconds,
            limits=limits,
        )
        if deleted is not None and deleted.metadata.deletion_timestamp:
            return self._cache_reply(resource, deleted)
        uid = deleted.metadata.uid if deleted is not None else intent.uid
        if uid:
            self._store.mark_deleted(resource, namespace, name, uid)
        return WriteReply(name, uid)

    def _cache_reply(self, resource: Resource, obj: Any) -> WriteReply:
        self._store.put(resource, obj)
        return WriteReply(obj.metadata.name, obj.metadata.uid)
