"""A watch's bytes, cut into lines and decoded in one pass.

aiohttp's line iterator refuses lines above 128 KB, and an object may have 1.5 MB, so chunks are split here.
Lines are handed on in batches, one per chunk: an async step per event would cost more than decoding it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from grove.api.json_depth import too_deep
from grove.kube.client import decoding
from grove.kube.client.resource import Resource
from grove.kube.client.undecodable import Undecodable, count_skipped, undecodable
from grove.kube.errors import LostReply, api_error, read_status

LONGEST_LINE = 64 * 1024**2
"""Bytes of an event. etcd accepts objects of 1.5 MiB; JSON may need six times as much to spell them, and a
server that is configured to accept larger ones is not one that accepts sixty."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_CHANGES = ("ADDED", "MODIFIED", "DELETED")
_TYPE = re.compile(rb'\s*{\s*"type"\s*:\s*"([A-Z]+)"')
T = TypeVar("T")


class LineTooLong(LostReply):
    """A line of a watch that no object can have; it is likely to come again."""


class Event(Struct, Generic[T], frozen=True):
    """Something that happened to an object, with the object as it was after it."""

    type: str
    object: T


class Bookmark(Struct, frozen=True):
    """The watch has told everything up to this version; with `initial_end`, all that existed at its start."""

    resource_version: str
    initial_end: bool


async def line_batches(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Whole lines, as many as have arrived. A last line without its end was torn off and is dropped.

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
        if len(pending) > LONGEST_LINE:
            raise LineTooLong(
                f"an event of the watch has more than {LONGEST_LINE} bytes: "
                "delete the object that is so large, or check the proxies in front of the API server"
            )


class SkippedEvent(Struct, frozen=True):
    """An event about an object that cannot be decoded; `type` is empty if not even that could be read."""

    type: str
    object: Undecodable


class EventDecoder(Generic[T]):
    """Decodes the lines of one watch."""

    def __init__(self, as_type: type[T], resource: Resource) -> None:
        self._decoder: msgspec.json.Decoder[Event[T]] = decoding.decoder(Event[as_type])  # type: ignore[valid-type]
        self._resource = resource

    def decode(self, line: bytes) -> Event[T] | Bookmark | SkippedEvent:
        """One event or bookmark. Raises nothing but what an ERROR event says, whatever the line holds."""
        if too_deep(line):
            return self._skip(line, None)
        try:
            event = self._decoder.decode(line)
        except Exception as problem:  # whatever a decoder raises, it is about the line
            return self._decode_other(line, problem)
        if event.type in _CHANGES:
            return event
        return self._decode_other(line, ValueError(f"unknown event type {event.type!r}"))

    def _decode_other(self, line: bytes, problem: Exception) -> Bookmark | SkippedEvent:
        """What is no object of the type: its shape depends on the event's type, so that is read first."""
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
