"""The verbs of the Kubernetes API, with replies decoded directly into the caller's struct.

A client keeps no state about objects; `grove.kube.cache.cache` does. It raises the errors of
`grove.kube.errors`. `as_type` is the msgspec type of the reply: a slim Struct with the fields that the caller
reads, `Object` for metadata only, `dict` or `msgspec.Raw`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Raw, Struct

from grove import timing
from grove.kube.client import decoding, label_selector
from grove.kube.client.decoding import Listing, Object, Scale
from grove.kube.client.label_selector import Labels
from grove.kube.client.resource import Resource, query
from grove.kube.client.rest import RestClient
from grove.kube.client.transport import Request
from grove.kube.client.undecodable import Undecodable
from grove.kube.errors import Gone

T = TypeVar("T")
Body = Struct | Mapping[str, Any] | bytes | Raw
JsonPatch = Sequence[Mapping[str, Any]]
Propagation = Literal["Background", "Foreground", "Orphan"]
PatchKind = Literal[
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
]
MERGE: PatchKind = "application/merge-patch+json"
JSON: PatchKind = "application/json-patch+json"
APPLY: PatchKind = "application/apply-patch+yaml"
STRATEGIC: PatchKind = "application/strategic-merge-patch+json"

__all__ = ["APPLY", "JSON", "MERGE", "STRATEGIC", "Client", "Listing", "Object", "PatchKind", "Scale"]


class RequestLimits(NamedTuple):
    """The timeout of a request, and whether a write may arrive late (see `Request.conditional`)."""

    timeout: float = 30.0
    conditional: bool = False


DEFAULT_LIMITS = RequestLimits()


class Client(RestClient):
    """A client of one API server. Use it as `async with Client(config) as client:`, or call `close`."""

    async def create(
        self,
        resource: Resource,
        body: Body,
        *,
        as_type: type[T],
        namespace: str | None = None,
        field_manager: str = "",
        dry_run: bool = False,
        limits: RequestLimits = DEFAULT_LIMITS,
    ) -> T:
        """Create an object and return it as stored."""
        path = resource.path(namespace) + _write_query(field_manager, dry_run)
        request = _request("POST", "create", resource, path, namespace, body=_encode(body), limits=limits)
        return decoding.decode((await self.send(request)).body, as_type, request)

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        as_type: type[T],
        namespace: str | None = None,
        subresource: str = "",
        limits: RequestLimits = DEFAULT_LIMITS,
    ) -> T:
        """Read an object, or its subresource."""
        path = resource.path(namespace, name, subresource)
        request = _request("GET", "get", resource, path, namespace, name, limits=limits)
        return decoding.decode((await self.send(request)).body, as_type, request)

    async def list(
        self,
        resource: Resource,
        *,
        as_type: type[T],
        namespace: str | None = None,
        labels: Labels = "",
        fields: str = "",
        page: int = timing.LIST_PAGE,
    ) -> Listing[T]:
        """All objects, read in pages of `page`. Objects that do not fit `as_type` are skipped, and listed in
        `undecodable`.

        If the continue token expires, everything is read again in one request, which cannot expire.
        """
        wanted = {"labelSelector": label_selector.render(labels), "fieldSelector": fields}
        try:
            return await self._pages(resource, namespace, wanted | {"limit": page}, as_type)
        except Gone:
            return await self._pages(resource, namespace, wanted, as_type)

    async def exists_any(
        self, resource: Resource, *, namespace: str | None = None, labels: Labels = ""
    ) -> bool:
        """Whether there is an object that matches: one request, for one object at most."""
        wanted = {"labelSelector": label_selector.render(labels), "limit": 1}
        path = resource.path(namespace) + query(wanted)
        request = _request("GET", "list", resource, path, namespace)
        part = decoding.decode_list((await self.send(request)).body, decoding.Object, resource)
        return bool(part.items or part.undecodable)

    async def _pages(
        self, resource: Resource, namespace: str | None, wanted: dict[str, Any], as_type: type[T]
    ) -> Listing[T]:
        items: list[T] = []
        skipped: list[Undecodable] = []
        while True:
            path = resource.path(namespace) + query(wanted)
            request = _request("GET", "list", resource, path, namespace)
            part = decoding.decode_list((await self.send(request)).body, as_type, resource)
            items += part.items
            skipped += part.undecodable
            if not part.continue_:
                return Listing(items, part.resource_version, tuple(skipped))
            wanted = wanted | {"continue": part.continue_}

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Body | JsonPatch,
        *,
        as_type: type[T],
        namespace: str | None = None,
        kind: PatchKind = MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
        limits: RequestLimits = DEFAULT_LIMITS,
    ) -> T:
        """Patch an object. With `kind=APPLY` a field manager is required, and `force` takes fields over."""
        if kind == APPLY and not field_manager:
            raise ValueError("server-side apply needs a field_manager: name one")
        path = resource.path(namespace, name, subresource) + _write_query(field_manager, dry_run, force)
        request = _request("PATCH", "patch", resource, path, namespace, name, _encode(body), kind, limits)
        return decoding.decode((await self.send(request)).body, as_type, request)

    async def replace(
        self,
        resource: Resource,
        name: str,
        body: Body,
        *,
        as_type: type[T],
        namespace: str | None = None,
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
    ) -> T:
        """Replace an object; a resourceVersion in the body makes it a compare-and-swap."""
        path = resource.path(namespace, name, subresource) + _write_query(field_manager, dry_run)
        request = _request("PUT", "update", resource, path, namespace, name, _encode(body))
        return decoding.decode((await self.send(request)).body, as_type, request)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        as_type: type[T],
        namespace: str | None = None,
        uid: str = "",
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        limits: RequestLimits = DEFAULT_LIMITS,
    ) -> T | None:
        """Delete an object. Returns it if the reply contains it, None if the reply is a Status.

        `uid` is a precondition: if the object has another one, Conflict is raised.
        """
        options = _delete_options(propagation, grace_seconds, uid)
        path = resource.path(namespace, name)
        request = _request("DELETE", "delete", resource, path, namespace, name, options, limits=limits)
        body = (await self.send(request)).body
        return None if decoding.is_status(body) else decoding.decode(body, as_type, request)

    async def set_scale(self, resource: Resource, name: str, replicas: int, *, namespace: str) -> Scale:
        """Set the wanted number of replicas through the scale subresource."""
        return await self.patch(
            resource,
            name,
            {"spec": {"replicas": replicas}},
            namespace=namespace,
            subresource="scale",
            as_type=Scale,
        )


def _request(
    method: str,
    verb: str,
    resource: Resource,
    path: str,
    namespace: str | None,
    name: str = "",
    body: bytes | None = None,
    content_type: str = "application/json",
    limits: RequestLimits = DEFAULT_LIMITS,
) -> Request:
    return Request(method, path, verb, resource.label, namespace or "", name, body, content_type, *limits)


def _encode(body: Body | JsonPatch) -> bytes:
    return body if isinstance(body, bytes) else decoding.encode(body)


def _write_query(field_manager: str, dry_run: bool = False, force: bool = False) -> str:
    if not (field_manager or dry_run or force):
        return ""
    return query({"fieldManager": field_manager, "dryRun": "All" if dry_run else "", "force": force})


def _delete_options(propagation: str | None, grace_seconds: int | None, uid: str) -> bytes | None:
    options: dict[str, Any] = {}
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if uid:
        options["preconditions"] = {"uid": uid}
    return decoding.encode({"apiVersion": "v1", "kind": "DeleteOptions", **options}) if options else None
