"""JSON as the API server writes it, in one pass into the caller's types.

A list is decoded as a whole. Only when that fails is it taken apart, so that one object that does not fit
costs itself and not its neighbours.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
import structlog
from msgspec import Raw, Struct

from grove.api.meta import ObjectMeta
from grove.kube import metrics
from grove.kube.errors import DecodeError
from grove.kube.resource import Resource
from grove.kube.transport import Request

T = TypeVar("T")
log = structlog.get_logger("grove.kube")
encode = msgspec.json.Encoder().encode


class Listing(Struct, Generic[T], frozen=True):
    """The objects of a collection, and the version of the collection as a whole."""

    items: list[T]
    resource_version: str


class Object(Struct, frozen=True, gc=False, rename="camel"):
    """Any object, of which only the metadata is read."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""


class _ScaleSpec(Struct, frozen=True, gc=False):
    replicas: int = 0


class _ScaleStatus(Struct, frozen=True, gc=False):
    replicas: int = 0
    selector: str = ""


class Scale(Struct, frozen=True, gc=False):
    """autoscaling/v1 Scale: the face that every scalable object shows to autoscalers."""

    metadata: ObjectMeta
    spec: _ScaleSpec = _ScaleSpec()
    status: _ScaleStatus = _ScaleStatus()


class _ListMeta(
    Struct, frozen=True, gc=False, rename={"continue_": "continue", "resource_version": "resourceVersion"}
):
    resource_version: str = ""
    continue_: str = ""


class _List(Struct, Generic[T], frozen=True):
    metadata: _ListMeta
    items: list[T] | None = None


class Page(Struct, Generic[T], frozen=True):
    """One page of a collection."""

    items: list[T]
    resource_version: str
    continue_: str


class _Kind(Struct, frozen=True, gc=False):
    kind: str = ""


_kind_decoder = msgspec.json.Decoder(_Kind)


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(as_type: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a type, made once: building one costs as much as decoding many objects."""
    known = _decoders.get(as_type)
    if known is None:
        known = _decoders[as_type] = msgspec.json.Decoder(as_type)
    return known


def decode(body: bytes, as_type: type[T], request: Request) -> T:
    """A reply as the type that the caller asked for."""
    try:
        reply: T = decoder(as_type).decode(body)
    except msgspec.MsgspecError as problem:
        raise DecodeError(f"{request}: the reply is not a {as_type.__name__} ({problem})") from problem
    return reply


def is_status(body: bytes) -> bool:
    """Whether a reply is a Status rather than an object."""
    return _kind_decoder.decode(body).kind == "Status"


def decode_list(body: bytes, as_type: type[T], resource: Resource) -> Page[T]:
    """One page of a list, without the objects that do not fit."""
    try:
        whole: _List[T] = decoder(_List[as_type]).decode(body)  # type: ignore[valid-type]
        items = whole.items or []
    except msgspec.MsgspecError:
        parts = decoder(_List[Raw]).decode(body)
        return Page(
            [item for raw in parts.items or () for item in decode_or_skip(raw, as_type, resource)],
            parts.metadata.resource_version,
            parts.metadata.continue_,
        )
    return Page(items, whole.metadata.resource_version, whole.metadata.continue_)


def decode_or_skip(raw: bytes | Raw, as_type: type[T], resource: Resource) -> tuple[T, ...]:
    """The object, or nothing: one that does not fit is counted, logged and skipped, never fatal."""
    try:
        return (decoder(as_type).decode(raw),)
    except msgspec.MsgspecError as problem:
        skip(raw, resource, problem)
        return ()


def skip(raw: bytes | Raw, resource: Resource, problem: Exception) -> None:
    """Count and log an object that cannot be decoded."""
    metrics.undecodable_total.labels(resource.label).inc()
    log.warning(
        "object skipped", key=_name_of(raw), action="decode", reason=str(problem), resource=resource.label
    )


class _Named(Struct, frozen=True, gc=False):
    metadata: dict[str, Any] = {}


def _name_of(raw: bytes | Raw) -> str:
    try:
        metadata = decoder(_Named).decode(raw).metadata
    except msgspec.MsgspecError:
        return "unknown"
    return "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
