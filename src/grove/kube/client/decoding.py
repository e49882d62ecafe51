"""Decodes JSON of the API server in one pass into the caller's types.

A list is decoded as a whole. Only if that fails, its objects are decoded one by one, so that only the objects
that do not fit their type are skipped.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from grove.api.json_depth import TOO_DEEP, too_deep
from grove.api.meta import ObjectMeta
from grove.kube.client.resource import Resource
from grove.kube.client.transport import Request
from grove.kube.client.undecodable import Undecodable, count_skipped, item_spans, undecodable
from grove.kube.errors import DecodeError

T = TypeVar("T")
encode = msgspec.json.Encoder().encode


class Listing(Struct, Generic[T], frozen=True):
    """The objects of a collection, and the version of the collection as a whole."""

    items: list[T]
    resource_version: str
    undecodable: tuple[Undecodable, ...] = ()
    """Objects that exist and were skipped."""


class Object(Struct, frozen=True, gc=False, rename="camel"):
    """Any object, of which only the metadata is decoded."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""


class _ScaleSpec(Struct, frozen=True, gc=False):
    replicas: int = 0


class _ScaleStatus(Struct, frozen=True, gc=False):
    replicas: int = 0
    selector: str = ""


class Scale(Struct, frozen=True, gc=False):
    """autoscaling/v1 Scale: the subresource through which autoscalers scale any kind."""

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
    undecodable: tuple[Undecodable, ...] = ()


class _Kind(Struct, frozen=True, gc=False):
    kind: str = ""


_kind_decoder = msgspec.json.Decoder(_Kind)


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(as_type: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a type, created once: that costs as much as decoding many objects."""
    known = _decoders.get(as_type)
    if known is None:
        known = _decoders[as_type] = msgspec.json.Decoder(as_type)
    return known


def decode(body: bytes, as_type: type[T], request: Request) -> T:
    """A reply as the type that the caller asked for."""
    try:
        reply: T = decode_text(body, as_type)
    except Exception as problem:  # whatever a decoder raises, its cause is the text
        raise DecodeError(f"{request}: the reply is not a {as_type.__name__} ({problem})") from problem
    return reply


def decode_text(text: bytes, as_type: Any) -> Any:
    """Text as a type. Raises ValueError for text that nests too deeply, before any decoder recurses."""
    if too_deep(text):
        raise ValueError(TOO_DEEP)
    return decoder(as_type).decode(text)


def is_status(body: bytes) -> bool:
    """Whether a reply is a Status rather than an object."""
    return not too_deep(body) and bool(_kind_decoder.decode(body).kind == "Status")


def decode_list(body: bytes, as_type: type[T], resource: Resource) -> Page[T]:
    """One page of a list, without the objects that do not fit."""
    try:
        page: _List[T] = decode_text(body, _List[as_type])  # type: ignore[valid-type]
    except Exception:
        return _decode_items(body, as_type, resource)
    return Page(page.items or [], page.metadata.resource_version, page.metadata.continue_)


def _decode_items(body: bytes, as_type: type[T], resource: Resource) -> Page[T]:
    """The objects of a list one by one, without those that do not fit."""
    spans = item_spans(body) if too_deep(body) else []
    # Without its items, the list itself is not nested deeply.
    outline = body[: spans[0][0]] + body[spans[-1][1] :] if spans else body
    parts: _List[Raw] = decoder(_List[Raw]).decode(outline)
    items: list[T] = []
    skipped: list[Undecodable] = []
    for text in [body[begin:end] for begin, end in spans] or map(bytes, parts.items or ()):
        try:
            items.append(decode_text(text, as_type))
        except Exception as problem:
            count_skipped(resource)
            skipped.append(undecodable(text, problem))
    return Page(items, parts.metadata.resource_version, parts.metadata.continue_, tuple(skipped))
