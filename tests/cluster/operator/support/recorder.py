"""Records the calls of an operator to the API server with their replies, for assertions about calls.

The recorder sits below the faults, right above the connection: it sees a write whose reply a fault drops, and
does not see a write that a fault refuses.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

import msgspec

from grove.kube.client.resource import EVENTS
from grove.kube.client.transport import Request, Response, Stream, Transport

QUIET_SECONDS = 1.3
"""Statuses are written up to a second after a change: an operator without calls for longer is idle."""
_STEP = 0.05


class Call(NamedTuple):
    """One request with the status code of its reply."""

    request: Request
    status: int

    @property
    def took_effect(self) -> bool:
        return self.request.is_write and self.status < 300

    def __str__(self) -> str:
        return (
            f"{self.request} {_target(self.request) if self.request.verb == 'create' else ''} {self.status}"
        )


class Recorder:
    """Records all calls except watches, of one operator or of several: those about one namespace and about
    cluster-scoped objects. Calls about namespaces of other tests are not recorded. Watches are counted."""

    def __init__(self, namespace: str) -> None:
        self._namespaces = ("", "default", namespace)
        self.calls: list[Call] = []
        self.watches: Counter[str] = Counter()
        """Open watches by resource."""
        self.most_watches: Counter[str] = Counter()
        """The most watches of a resource that were open at the same time."""
        self._in_flight = 0
        self._tick = asyncio.Event()

    def on(self, transport: Transport) -> Transport:
        """The transport, with its calls recorded."""
        return _RecordingTransport(transport, self)

    async def note(self, request: Request, answer: Coroutine[Any, Any, Response]) -> Response:
        """Record the request when it is sent and the reply when it arrives."""
        if request.namespace not in self._namespaces:
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

    @contextmanager
    def watch(self, resource: str) -> Iterator[None]:
        """Count a watch while it is open."""
        self.watches[resource] += 1
        self.most_watches[resource] = max(self.most_watches[resource], self.watches[resource])
        try:
            yield
        finally:
            self.watches[resource] -= 1

    async def next_call(self) -> None:
        """Wait until a request is sent or a reply arrives."""
        self._tick.clear()
        await self._tick.wait()

    async def until_quiet(self, seconds: float = QUIET_SECONDS) -> None:
        """Wait until no request has been sent for that long. The time is counted in short steps: while this
        process gets no CPU time, the operator in it cannot send requests, and that time must not count."""
        quiet = 0.0
        while quiet < seconds:
            self._tick.clear()
            try:
                await asyncio.wait_for(self._tick.wait(), _STEP)
            except TimeoutError:
                quiet = 0.0 if self._in_flight else quiet + _STEP
            else:
                quiet = 0.0

    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.request.is_write]

    def refused_creates(self) -> list[str]:
        """Creates that the API server refused, by kind and name, one entry for each try."""
        return [
            f"{request.resource} {_body(request)['metadata']['name']}"
            for request, status in self.calls
            if request.verb == "create" and status >= 300 and request.resource != EVENTS.label
        ]

    def warnings(self, reason: str = "") -> list[str]:
        """The notes of warning events, of all reasons or of one."""
        events = [
            _body(request)
            for request, _ in self.calls
            if request.is_write and request.resource == EVENTS.label
        ]
        found = (event for event in events if event.get("type") == "Warning")
        return [str(event["note"]) for event in found if not reason or event["reason"] == reason]

    def creates_and_deletes(self) -> Counter[str]:
        """How often each object was created and deleted; pods by their clique.

        A delete also counts if the object is already gone, since the garbage collector may be faster, and it
        counts once if it is sent again because its reply was lost.
        """
        creates_and_deletes: Counter[str] = Counter()
        deleted: set[tuple[str, str]] = set()
        for request, status in self.calls:
            if request.resource == EVENTS.label:  # events are not compared
                continue
            created = request.verb == "create" and status < 300
            identity = (request.path, _uid(request))
            is_delete = request.verb in ("delete", "deletecollection") and (status < 300 or status == 404)
            if created or (is_delete and identity not in deleted):
                creates_and_deletes[f"{request.verb} {request.resource} {_target(request)}"] += 1
            if is_delete:
                deleted.add(identity)
        return creates_and_deletes


def _target(request: Request) -> str:
    """The name of the object, of pods without the random suffix; of a collection its selector."""
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
    """A transport whose calls a recorder records."""

    def __init__(self, inner: Transport, recorder: Recorder) -> None:
        self._inner, self._recorder = inner, recorder

    async def send(self, request: Request) -> Response:
        return await self._recorder.note(request, self._inner.send(request))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        with self._recorder.watch(request.resource):
            async with self._inner.stream(request) as stream:
                yield stream

    async def close(self) -> None:
        await self._inner.close()
