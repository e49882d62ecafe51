"""Intents on objects that are there: which one is meant, and that it has not changed since we looked."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from grove.api.intents import Create, Delete, Patch, Status, Target
from grove.api.meta import ObjectMeta
from grove.plan.writes.diff import status_patch


class CachedObject(Protocol):
    """An object as the cache has it."""

    @property
    def metadata(self) -> ObjectMeta: ...


class GroveObject(CachedObject, Protocol):
    """One of our own kinds."""

    @property
    def api_version(self) -> str: ...
    @property
    def kind(self) -> str: ...


class ObjectWithStatus(GroveObject, Protocol):
    """One of our own kinds, with what it says about itself."""

    @property
    def status(self) -> Struct: ...


def target(found: GroveObject) -> Target:
    return Target(found.api_version, found.kind, found.metadata.name, found.metadata.namespace)


def target_of_kind(api_version: str, kind: str, found: CachedObject) -> Target:
    return Target(api_version, kind, found.metadata.name, found.metadata.namespace)


def create(body: dict[str, Any], after: tuple[str, ...] = ()) -> Create:
    meta = body["metadata"]
    return Create(
        Target(body["apiVersion"], body["kind"], meta["name"], meta["namespace"]), body, after=after
    )


def patch_if_unchanged(found: GroveObject, body: dict[str, Any]) -> Patch:
    """A patch that fails if the object has changed since we looked."""
    metadata = {"resourceVersion": found.metadata.resource_version, **body.get("metadata", {})}
    return Patch(target(found), {**body, "metadata": metadata})


def confirm(found: GroveObject) -> Patch:
    """Changes nothing, and fails if the object has changed since we looked."""
    return patch_if_unchanged(found, {})


def write_status(found: ObjectWithStatus, status: Struct) -> Status:
    """A decision, written down before it is acted on; fails if the object has changed since we looked."""
    metadata = {"resourceVersion": found.metadata.resource_version}
    return Status(target(found), {"metadata": metadata, "status": status_patch(found.status, status)})


def confirm_pod(found: CachedObject) -> Patch:
    """Changes nothing, and fails if anything about the pod has changed since we looked."""
    metadata = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
    return Patch(target_of_kind("v1", "Pod", found), {"metadata": metadata})


def delete(found: GroveObject, after: tuple[str, ...] = ()) -> Delete:
    """Deletes exactly the object that was seen."""
    return Delete(target(found), uid=found.metadata.uid, after=after)


def delete_pod(found: CachedObject, after: tuple[str, ...] = ()) -> Delete:
    return Delete(target_of_kind("v1", "Pod", found), uid=found.metadata.uid, after=after)


def patch_pod_metadata(found: CachedObject, metadata: dict[str, Any], after: tuple[str, ...] = ()) -> Patch:
    """Changes the metadata of exactly the pod that was seen."""
    body = {"metadata": {"uid": found.metadata.uid, **metadata}}
    return Patch(target_of_kind("v1", "Pod", found), body, after=after)
