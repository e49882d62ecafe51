"""Splits the bytes of a watch into lines and decodes them into events. Used by the reflector and the elector.

Lines are yielded in batches, one per chunk: an async step per event would cost more than decoding it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from grove import timing
from grove.api.json_depth import too_deep
from grove.kube.client import decoding
from grove.kube.client.resource import Resource
from grove.kube.client.undecodable import Undecodable, count_skipped, undecodable
from grove.kube.errors import LostReply, api_error, read_status

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_CHANGES = ("ADDED", "MODIFIED", "DELETED")
_TYPE = re.compile(rb'\s*{\s*"type"\s*:\s*"([A-Z]+)"')
T = TypeVar("T")


class LineTooLong(LostReply):
    """A line of a watch that is longer than any object; it is likely to come again."""


class Event(Struct, Generic[T], frozen=True):
    """A watch event: its type, and the object after the change."""

    type: str
    object: T


class Bookmark(Struct, frozen=True):
    """The watch has sent everything up to this version; with `initial_end`, all that existed at its start."""

    resource_version: str
    initial_end: bool


async def line_batches(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Whole lines, as many as have arrived. An incomplete last line is dropped.

    Raises LostReply for a line that is longer than any object: the watch has to be started again.
    """
    pending = bytearray()
    async for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        pending += first
        if rest:
            lines = [bytes(pending), *rest[:-1]]
            pending = bytearray(rest[-1])
            yield [line for line in lines if line]
        if len(pending) > timing.MAX_WATCH_LINE:
            raise LineTooLong(
                f"an event of the watch has more than {timing.MAX_WATCH_LINE} bytes: "
                "delete the large object, or check the proxies in front of the API server"
            )


class SkippedEvent(Struct, frozen=True):
    """An event about an object that cannot be decoded; `type` is empty if that cannot be read either."""

    type: str
    object: Undecodable


class EventDecoder(Generic[T]):
    """Decodes the lines of one watch."""

    def __init__(self, as_type: type[T], resource: Resource) -> None:
        self._decoder: msgspec.json.Decoder[Event[T]] = decoding.decoder(Event[as_type])  # type: ignore[valid-type]
        self._resource = resource

    def decode(self, line: bytes) -> Event[T] | Bookmark | SkippedEvent:
        """One event or bookmark. Raises only the error of an ERROR event, whatever the line contains."""
        if too_deep(line):
            return self._skip(line, None)
        try:
            event = self._decoder.decode(line)
        except Exception as problem:  # whatever a decoder raises, its cause is the line
            return self._decode_other(line, problem)
        if event.type in _CHANGES:
            return event
        return self._decode_other(line, ValueError(f"unknown event type {event.type!r}"))

    def _decode_other(self, line: bytes, problem: Exception) -> Bookmark | SkippedEvent:
        """A line that is not an event of the resource: its format depends on the event's type, which is read
        first."""
        try:
            event = decoding.decoder(Event[Raw]).decode(line)
            if event.type == "BOOKMARK":
                metadata = decoding.decoder(decoding.Object).decode(event.object).metadata
                ended = metadata.annotations.get(INITIAL_EVENTS_END) == "true"
                return Bookmark(metadata.resource_version, ended)
        except Exception as worse:
            return self._skip(line, worse)
        if event.type == "ERROR":
            raise api_error(f"watch {self._resource.label}", read_status(bytes(event.object), 500))
        return self._skip(line, problem)

    def _skip(self, line: bytes, problem: Exception | None) -> SkippedEvent:
        count_skipped(self._resource)
        found = _TYPE.match(line)
        return SkippedEvent(found[1].decode() if found else "", undecodable(line, problem, level=2))
