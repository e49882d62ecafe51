"""Snapshot files: the state of a cluster as one JSON document, written by `grove snapshot`."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from grove.api.formats import timestamps
from grove.api.json_depth import TOO_DEEP, too_deep
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.model import ClusterState, KindState
from grove.cluster_state.redaction import changed_hashes, redacted, with_hashes
from grove.kube.client import decoding
from grove.kube.client.decoding import Object
from grove.kube.client.resource import Resource
from grove.kube.errors import KubeError
from grove.operator.caches.resources import resource_of
from grove.plan.timestamps import rfc3339

GROUP = "snapshot.grove.io"
API_VERSION = f"{GROUP}/v1"
KIND = "ClusterSnapshot"
_HINT = "write one with: grove snapshot > cluster.json"


class SnapshotError(KubeError):
    """The file is no snapshot that can be read; the message says why, and what to do."""


class _Header(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _Kind(Struct, frozen=True, rename="camel", omit_defaults=True):
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    served: bool = True
    problem: str = ""
    namespace: str = ""
    items: tuple[Raw, ...] = ()
    undecodable: tuple[str, ...] = ()


class _Snapshot(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    taken_at: str
    server_version: str
    kinds: tuple[_Kind, ...]


def encode(state: ClusterState) -> bytes:
    """The document of a state, without secret values (see `redaction`); one object per line."""
    hashes = changed_hashes(state.kind(resource_of(PodCliqueSet.KIND)).items)
    kinds = tuple(
        _kind(each, hashes) for each in sorted(state.kinds.values(), key=lambda each: each.resource.label)
    )
    document = _Snapshot(API_VERSION, KIND, rfc3339(state.taken_at), state.server_version, kinds)
    return msgspec.json.encode(document).replace(b'},{"group"', b'},\n{"group"') + b"\n"


def _kind(found: KindState, hashes: dict[str, str]) -> _Kind:
    resource = found.resource
    bodies = (with_hashes(redacted(msgspec.json.decode(item)), hashes) for item in found.items)
    return _Kind(
        resource.group,
        resource.version,
        resource.plural,
        resource.kind,
        resource.namespaced,
        found.served,
        found.problem,
        found.namespace,
        tuple(Raw(msgspec.json.encode(each)) for each in bodies),
        found.undecodable,
    )


def read_file(path: Path) -> ClusterState:
    """The state in a snapshot file. Raises SnapshotError."""
    try:
        text = path.read_bytes()
    except OSError as problem:
        raise SnapshotError(f"{path}: cannot be read ({problem.strerror}): check the path") from None
    return decode(text, str(path))


def decode(text: bytes, source: str) -> ClusterState:
    """The state in the text of a snapshot file. Raises SnapshotError."""
    if not text.strip():
        raise SnapshotError(f"{source}: the file is empty: {_HINT}")
    if too_deep(text):
        raise SnapshotError(f"{source}: {TOO_DEEP}: {_HINT}")
    header = _header(text, source)
    group, _, version = header.api_version.partition("/")
    if header.kind != KIND or group != GROUP:
        found = f"{header.api_version or 'no apiVersion'}, kind {header.kind or 'missing'}"
        raise SnapshotError(f"{source}: not a snapshot of a cluster ({found}): {_HINT}")
    if header.api_version != API_VERSION:
        raise SnapshotError(
            f"{source}: version {version} of snapshots is not known to this grove, which reads v1: "
            "update grove, or take the snapshot again"
        )
    try:
        document = msgspec.json.decode(text, type=_Snapshot)
        taken_at = timestamps.parse(document.taken_at).timestamp()
    except (msgspec.MsgspecError, ValueError, OverflowError) as problem:
        raise SnapshotError(f"{source}: not a valid snapshot ({problem}): take it again") from None
    kinds = map(_state, document.kinds)
    return ClusterState({each.resource: each for each in kinds}, taken_at, document.server_version, source)


def _header(text: bytes, source: str) -> _Header:
    try:
        return msgspec.json.decode(text, type=_Header)
    except msgspec.ValidationError:
        return _Header()
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        why = "it ends too early" if "truncated" in str(problem) else "it is not JSON"
        raise SnapshotError(f"{source}: not a snapshot of a cluster: {why}: {_HINT}") from None


def _state(found: _Kind) -> KindState:
    resource = Resource(found.group, found.version, found.plural, found.kind, found.namespaced)
    items, undecodable = list[Raw](), list(found.undecodable)
    for item in found.items:
        if _is_object(item):
            items.append(item)
        else:
            undecodable.append(_name(item))
    return KindState(resource, tuple(items), found.served, found.problem, found.namespace, tuple(undecodable))


def _is_object(item: Raw) -> bool:
    try:
        return bool(decoding.decode_text(bytes(item), Object).metadata.name)
    except Exception:  # whatever a decoder raises, its cause is the text
        return False


def _name(item: Raw) -> str:
    """The name of an object that cannot be decoded, as far as it has one."""
    try:
        metadata = msgspec.json.decode(item)["metadata"]
        return f"{metadata.get('namespace') or ''}/{metadata['name']}".lstrip("/")
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError, AttributeError):
        return "an object without a name"
