"""Objects in memory: applies the writes of plans to the operator's caches, as the API server would.

Only what the plans of sets and replicas write is supported: creates, merge patches, statuses and deletes.
Deleted objects are gone at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from grove.api.configuration.types import DEFAULT_SCHEDULER
from grove.api.intents import Create, Delete, Intent, Patch
from grove.api.types.cluster.scheduling_pod import SchedulingPod
from grove.cluster_state.kinds import listed_caches
from grove.cluster_state.model import ClusterState
from grove.cluster_state.redaction import without_values
from grove.kube.cache.cache import Cache
from grove.kube.client import decoding, label_selector
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, Resource
from grove.kube.executor.deferred_values import DeferredValues
from grove.operator.caches.registry import Caches
from grove.plan.model import StatusUpdate
from grove.plan.placement.demand import with_default_requests
from grove.plan.timestamps import rfc3339

Body = dict[str, Any]
_FIRST_VERSION = 2**52
"""Newer than every resourceVersion of a real cluster."""


class AppliedWrite(Struct, frozen=True):
    """A write that was applied."""

    verb: str
    """`create`, `patch` or `delete`."""
    kind: str
    namespace: str
    name: str
    labels: Mapping[str, str] = {}
    visible: bool = True
    """Whether it changes more than values that the state does not have."""


class MemoryCluster:
    """The objects of a state, and those that plans have created since. `redacted`: the state is that of a
    snapshot file, which has no values of environment variables: writing only those is no visible change."""

    def __init__(self, state: ClusterState, caches: Caches, *, redacted: bool = False) -> None:
        self._redacted = redacted
        self._state, self._pods = state, caches.cluster_pods
        self._caches: dict[str, list[Cache[Any]]] = {}
        self._resources = {_kind(resource): resource for resource in state.kinds}
        for cache in listed_caches(caches):
            self._caches.setdefault(_kind(cache.resource), []).append(cache)
        self._read: dict[str, dict[tuple[str, str], Raw]] = {}
        self._bodies: dict[tuple[str, str, str], Body | None] = {}
        self._version = _FIRST_VERSION
        self._priority_class = caches.priority_class

    def apply(self, intents: Iterable[Intent], now: float) -> list[AppliedWrite]:
        """Apply the writes of a plan, which lists each one after those that it depends on. Returns what has
        changed anything."""
        deferred, done = DeferredValues(), list[AppliedWrite]()
        for intent in intents:
            target = intent.target
            kind, name = f"{target.api_version}/{target.kind}", deferred.resolve(target.name)
            before = self.get(kind, target.namespace, name)
            uid = str(before["metadata"].get("uid", "")) if before is not None else ""
            match intent:
                case Create():
                    verb = "create"
                    if before is None:
                        after = msgspec.json.decode(deferred.encode(intent.body))
                        uid = self._create(kind, target.namespace, name, after, now)
                    changed = before is None
                case Delete():
                    verb, changed = "delete", before is not None
                    if before is not None:
                        self.delete(kind, target.namespace, name, now)
                case _:
                    verb = "patch"
                    patch = msgspec.json.decode(deferred.encode(intent.body))
                    subresource = intent.subresource if isinstance(intent, Patch) else "status"
                    changed = before is not None and self._patch(kind, before, patch)
                    verb = "status" if subresource else verb
            deferred.uids[intent.id] = uid or "unknown"
            if changed:
                found = self.get(kind, target.namespace, name) or before or {}
                labels = found.get("metadata", {}).get("labels") or {}
                visible = verb != "patch" or self._is_visible(before, found)
                done.append(AppliedWrite(verb, target.kind, target.namespace, name, labels, visible))
        return done

    def _is_visible(self, before: Body | None, after: Body) -> bool:
        if not self._redacted or before is None:
            return True
        parts = [{**each, "metadata": each["metadata"] | _COUNTERS} for each in (before, after)]
        return bool(without_values(parts[0]) != without_values(parts[1]))

    def publish(self, updates: Iterable[StatusUpdate]) -> bool:
        """Write statuses that differ, each on the version that it was computed from. Returns whether one
        was."""
        changed = False
        for update in updates:
            target = update.target
            kind = f"{target.api_version}/{target.kind}"
            before = self.get(kind, target.namespace, target.name)
            desired = update.desired
            if hasattr(desired, "observed_generation"):
                desired = msgspec.structs.replace(desired, observed_generation=update.observed_generation)
            if before is not None and before["metadata"].get("resourceVersion") == update.resource_version:
                changed |= self._patch(kind, before, {"status": msgspec.to_builtins(desired)})
        return changed

    def get(self, kind: str, namespace: str, name: str) -> Body | None:
        """An object as JSON; None if it does not exist. `kind` is `apps/v1/Deployment`."""
        key = (kind, namespace, name)
        if key not in self._bodies:
            item = self._items(kind).get((namespace, name))
            self._bodies[key] = msgspec.json.decode(item) if item is not None else None
        return self._bodies[key]

    def _items(self, kind: str) -> Mapping[tuple[str, str], Raw]:
        """The objects of a kind as they were read, by namespace and name."""
        found = self._read.get(kind)
        if found is None:
            resource = self._resources.get(kind)
            items = self._state.kind(resource).items if resource is not None else ()
            metadata = ((decoding.decode_text(bytes(item), Object).metadata, item) for item in items)
            found = self._read[kind] = {(meta.namespace, meta.name): item for meta, item in metadata}
        return found

    def objects(self, resource: Resource) -> list[Body]:
        """All objects of a kind as they are by now."""
        kind = _kind(resource)
        read = {key: msgspec.json.decode(item) for key, item in self._items(kind).items()}
        written = {key[1:]: body for key, body in self._bodies.items() if key[0] == kind}
        return [body for body in (read | written).values() if body is not None]

    def put(self, body: Body, now: float) -> Body:
        """Create an object, or replace its spec and metadata as an update by a user does."""
        meta = body["metadata"]
        kind = f"{body['apiVersion']}/{body['kind']}"
        before = self.get(kind, meta.get("namespace", ""), meta["name"])
        if before is None:
            self._create(kind, meta.get("namespace", ""), meta["name"], body, now)
        else:
            own = {key: meta[key] for key in ("labels", "annotations") if key in meta}
            after = {**before, **body, "metadata": {**before["metadata"], **own}}
            if "status" in before:
                after["status"] = before["status"]
            if after.get("spec") != before.get("spec"):
                after["metadata"]["generation"] = int(before["metadata"].get("generation", 1)) + 1
            self._store(kind, after)
        found = self.get(kind, meta.get("namespace", ""), meta["name"])
        assert found is not None
        return found

    def set_pod(self, body: Body) -> None:
        """Replace a pod, also its node and its status."""
        self._store(_kind(PODS), body)

    def delete(self, kind: str, namespace: str, name: str, now: float) -> None:
        """Remove an object: it terminates, and is gone."""
        before = self.get(kind, namespace, name)
        if before is None:
            return
        leaving = {**before["metadata"], "deletionTimestamp": rfc3339(now)}
        body = self._store(kind, {**before, "metadata": leaving})
        self._send("DELETED", kind, body)
        self._bodies[kind, namespace, name] = None

    def _create(self, kind: str, namespace: str, name: str, body: Body, now: float) -> str:
        uid = f"planned-{self._version + 1}"
        given = {"name": name, "uid": uid, "generation": 1, "creationTimestamp": rfc3339(now)}
        metadata = {**body.get("metadata", {}), **given}
        if kind == _kind(PODS):
            body = {**body, "spec": self._admitted(body.get("spec", {}))}
        self._store(kind, {**body, "metadata": metadata | ({"namespace": namespace} if namespace else {})})
        return uid

    def _admitted(self, spec: Body) -> Body:
        """The spec of a pod as the API server stores it: with requests for limits, and its priority."""
        found = self._priority_class(spec.get("priorityClassName") or "")
        priority = {"priority": found.value} if found is not None else {}
        stored: Body = with_quantities(with_default_requests(spec))
        return {"schedulerName": DEFAULT_SCHEDULER, **stored, **priority}

    def _patch(self, kind: str, before: Body, patch: Any) -> bool:
        metadata = {key: value for key, value in patch.get("metadata", {}).items() if key not in _FENCES}
        after = merged(before, {**patch, "metadata": metadata})
        if after == before:
            return False
        if after.get("spec") != before.get("spec"):
            after["metadata"]["generation"] = int(before["metadata"].get("generation", 1)) + 1
        self._store(kind, after)
        return True

    def _store(self, kind: str, body: Body) -> Body:
        self._version += 1
        meta = {**body["metadata"], "resourceVersion": str(self._version)}
        stored = {**body, "metadata": meta}
        self._bodies[kind, meta.get("namespace", ""), meta["name"]] = stored
        self._send("MODIFIED", kind, stored)
        return stored

    def _send(self, event: str, kind: str, body: Body) -> None:
        text, labels = msgspec.json.encode(body), body["metadata"].get("labels") or {}
        for cache in self._caches.get(kind, ()):
            if label_selector.parse(cache.labels)(labels):
                cache.apply_event(event, decoding.decode_text(text, cache.as_type))
        if kind == _kind(PODS) and self._pods is not None:
            self._pods.apply_event(event, decoding.decode_text(text, SchedulingPod))


_QUANTITIES = frozenset({"requests", "limits", "overhead"})
_COUNTERS = {"generation": 0, "resourceVersion": ""}
_FENCES = frozenset({"uid", "resourceVersion"})
"""Metadata in patches that are preconditions: in memory nothing else writes."""


def _kind(resource: Resource) -> str:
    return f"{resource.api_version}/{resource.kind}"


def with_quantities(found: Any) -> Any:
    """JSON with quantities as the API server writes them: as strings."""
    if isinstance(found, list):
        return [with_quantities(each) for each in found]
    if not isinstance(found, dict):
        return found
    return {
        key: {name: str(amount) for name, amount in value.items()}
        if key in _QUANTITIES and isinstance(value, dict)
        else with_quantities(value)
        for key, value in found.items()
    }


def merged(current: Any, patch: Any) -> Any:
    """The result of a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = {**current} if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
