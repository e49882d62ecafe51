"""What an operator asked of the API server, and how it was answered: the evidence for claims about calls.

It sits below the faults, right above the wire: a write whose reply was lost on the way up is seen here, and
one that a fault refused was never made.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from grove.kube.client.resource import EVENTS
from grove.kube.client.transport import Request, Response, Stream, Transport

LONGEST_SILENCE = 1.3
"""Statuses trail the news by up to a second: who says nothing for longer has nothing to say."""
_MOMENT = 0.05


class Call(NamedTuple):
    """One request with its answer."""

    request: Request
    status: int

    @property
    def took_effect(self) -> bool:
        return self.request.is_write and self.status < 300

    def __str__(self) -> str:
        return f"{self.request} {_who(self.request) if self.request.verb == 'create' else ''} {self.status}"


class Recorder:
    """Remembers the calls, all but watches, of one operator or of several that follow each other: about one
    namespace, and about what is in none. What other tests left behind may keep an operator busy as well."""

    def __init__(self, namespace: str) -> None:
        self._places = ("", "default", namespace)
        self.calls: list[Call] = []
        self._in_flight = 0
        self._tick = asyncio.Event()

    def on(self, transport: Transport) -> Transport:
        """The transport, overheard."""
        return _RecordingTransport(transport, self)

    async def note(self, request: Request, answer: Awaitable[Response]) -> Response:
        """Note the request when it is sent and its answer when it comes."""
        if request.namespace not in self._places:
            return await answer
        self._in_flight += 1
        self._tick.set()
        try:
            response = await answer
        finally:
            self._in_flight -= 1
        self.calls.append(Call(request, response.status))
        self._tick.set()
        return response

    async def next_call(self) -> None:
        """Wait until something is asked or answered."""
        self._tick.clear()
        await self._tick.wait()

    async def silence(self, seconds: float = LONGEST_SILENCE) -> None:
        """Wait until nothing has been asked for that long. It is counted moment by moment: while the machine
        gives us no time, the operator in this process cannot say anything either, which is no silence."""
        heard = 0.0
        while heard < seconds:
            self._tick.clear()
            try:
                await asyncio.wait_for(self._tick.wait(), _MOMENT)
            except TimeoutError:
                heard = 0.0 if self._in_flight else heard + _MOMENT
            else:
                heard = 0.0

    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.request.is_write]

    def refused_creates(self) -> list[str]:
        """What the server would not have made, by kind and name, as often as it was tried."""
        return [
            f"{request.resource} {_body(request)['metadata']['name']}"
            for request, status in self.calls
            if request.verb == "create" and status >= 300 and request.resource != EVENTS.label
        ]

    def complaints(self) -> list[str]:
        """Events about what could not be done."""
        events = [
            _body(request)
            for request, _ in self.calls
            if request.is_write and request.resource == EVENTS.label
        ]
        return [str(event["note"]) for event in events if event.get("type") == "Warning"]

    def creates_and_deletes(self) -> Counter[str]:
        """What was created, and what was decided to be deleted; pods by their clique.

        A delete counts if it came too late, for the garbage collector may be faster; and it counts once if
        it was sent again because its reply was lost.
        """
        creates_and_deletes: Counter[str] = Counter()
        deleted: set[tuple[str, str]] = set()
        for request, status in self.calls:
            if request.resource == EVENTS.label:  # words, not deeds
                continue
            made = request.verb == "create" and status < 300
            identity = (request.path, _uid(request))
            left = request.verb in ("delete", "deletecollection") and (status < 300 or status == 404)
            if made or (left and identity not in deleted):
                creates_and_deletes[f"{request.verb} {request.resource} {_who(request)}"] += 1
            if left:
                deleted.add(identity)
        return creates_and_deletes


def _who(request: Request) -> str:
    if request.verb == "deletecollection":
        return request.path.partition("?")[2]
    name = request.name or str(_body(request)["metadata"]["name"])
    return name.rpartition("-")[0] if request.resource == "pods" else name


def _uid(request: Request) -> str:
    if not request.verb.startswith("delete"):
        return ""
    return str(_body(request).get("preconditions", {}).get("uid", ""))


def _body(request: Request) -> dict[str, Any]:
    return msgspec.json.decode(request.body) if request.body else {}


class _RecordingTransport:
    """A transport whose calls somebody notes."""

    def __init__(self, inner: Transport, recorder: Recorder) -> None:
        self._inner, self._recorder = inner, recorder

    async def send(self, request: Request) -> Response:
        return await self._recorder.note(request, self._inner.send(request))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        await self._inner.close()
