"""Builds intents on observed objects, with the preconditions (UID, resourceVersion) that fence them."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from grove.api.intents import Create, Delete, ObjectRef, Patch, Status, Target
from grove.api.meta import ObjectMeta
from grove.api.types.kind import Kind
from grove.plan.model import PlannedEvent, StatusUpdate
from grove.plan.writes.diff import status_patch


class CachedObject(Protocol):
    """An object from the informer cache."""

    @property
    def metadata(self) -> ObjectMeta: ...


class GroveObject(CachedObject, Protocol):
    """An object of a Grove kind."""

    @property
    def api_version(self) -> str: ...
    @property
    def kind(self) -> str: ...


class ObjectWithStatus(GroveObject, Protocol):
    """An object of a Grove kind with a status."""

    @property
    def status(self) -> Struct: ...


def target(found: GroveObject) -> Target:
    return Target(found.api_version, found.kind, found.metadata.name, found.metadata.namespace)


def target_of_kind(api_version: str, kind: str, found: CachedObject) -> Target:
    return Target(api_version, kind, found.metadata.name, found.metadata.namespace)


def reference(found: GroveObject) -> ObjectRef:
    """Refers to an object in events and errors."""
    meta = found.metadata
    return ObjectRef(found.api_version, found.kind, meta.name, meta.namespace, meta.uid)


def child_reference(workload: CachedObject, kind: Kind, name: str, uid: str = "") -> ObjectRef:
    """Refers to a clique or group of a set that may not exist yet. Its UID is then deferred; errors need
    none."""
    return ObjectRef(kind.api_version, kind.name, name, workload.metadata.namespace, uid)


def create(body: dict[str, Any], after: tuple[str, ...] = (), regarding: ObjectRef | None = None) -> Create:
    meta = body["metadata"]
    target = Target(body["apiVersion"], body["kind"], meta["name"], meta["namespace"])
    return Create(target, body, after=after, regarding=regarding)


def patch_if_unchanged(found: GroveObject, body: dict[str, Any]) -> Patch:
    """A patch that fails if the object has changed since it was observed."""
    metadata = {"resourceVersion": found.metadata.resource_version, **body.get("metadata", {})}
    return Patch(target(found), {**body, "metadata": metadata})


def confirm(found: GroveObject) -> Patch:
    """An empty patch that fails if the object has changed since it was observed."""
    return patch_if_unchanged(found, {})


def write_status(found: ObjectWithStatus, status: Struct) -> Status:
    """A status write of a decision, before the decision is acted on; fails if the object has changed since it
    was observed."""
    metadata = {"resourceVersion": found.metadata.resource_version}
    return Status(target(found), {"metadata": metadata, "status": status_patch(found.status, status)})


def status_update(
    found: ObjectWithStatus,
    desired: Struct,
    observed_generation: int = 0,
    events: tuple[PlannedEvent, ...] = (),
    *,
    updating: bool = False,
) -> StatusUpdate:
    """The update of the observed object to its desired status."""
    version = found.metadata.resource_version
    return StatusUpdate(target(found), found.status, desired, observed_generation, version, events, updating)


def confirm_pod(found: CachedObject) -> Patch:
    """An empty patch that fails if the pod has changed since it was observed."""
    metadata = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
    return Patch(target_of_kind("v1", "Pod", found), {"metadata": metadata})


def delete(found: GroveObject, after: tuple[str, ...] = ()) -> Delete:
    """Deletes the observed object only, not one that was created again with its name."""
    return Delete(target(found), uid=found.metadata.uid, after=after)


def delete_of_kind(api_version: str, kind: str, found: CachedObject, after: tuple[str, ...] = ()) -> Delete:
    """The same for an object of any kind."""
    return Delete(target_of_kind(api_version, kind, found), uid=found.metadata.uid, after=after)


def delete_pod(found: CachedObject, after: tuple[str, ...] = (), clique: ObjectRef | None = None) -> Delete:
    """Deletes a pod of a clique, which reports it if that fails."""
    target = target_of_kind("v1", "Pod", found)
    return Delete(target, uid=found.metadata.uid, after=after, regarding=clique)


def patch_pod_metadata(found: CachedObject, metadata: dict[str, Any], after: tuple[str, ...] = ()) -> Patch:
    """Patches the metadata of the observed pod only, not of one that was created again with its name."""
    body = {"metadata": {"uid": found.metadata.uid, **metadata}}
    return Patch(target_of_kind("v1", "Pod", found), body, after=after)
