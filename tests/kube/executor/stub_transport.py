"""A transport whose answers a test decides, on virtual time.

It replaces the network and knows nothing of Kubernetes; whether the real server answers like this is tested
in `tests/cluster`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
from msgspec import Struct

from grove.kube.client.transport import Request, Response, Stream


class SentRequest(Struct, frozen=True):
    """A request, and when it was sent and answered."""

    request: Request
    began: float
    ended: float

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.request.body or b"null")


Answer = Response | Exception


class StubTransport:
    """`answer` decides the reply of a request, `latency` after how many seconds it comes."""

    def __init__(
        self, answer: Callable[[Request], Answer], latency: Callable[[Request], float] = lambda _: 0.01
    ) -> None:
        self._answer = answer
        self._latency = latency
        self.sent: list[SentRequest] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def send(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.in_flight += 1
        self.most_in_flight = max(self.in_flight, self.most_in_flight)
        await asyncio.sleep(self._latency(request))
        self.in_flight -= 1
        self.sent.append(SentRequest(request, began, loop.time()))
        answer = self._answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise AssertionError(f"a watch is not expected: {request}")

    async def close(self) -> None:
        """Does nothing: no connection is open."""


def created_reply(request: Request, uid: str = "", **metadata: Any) -> Response:
    """The object as the server would store it: the body with a UID built from its name."""
    body = msgspec.json.decode(request.body or b"{}")
    name = request.name or body["metadata"]["name"]
    stored = {"resourceVersion": "1", **body.get("metadata", {}), "name": name, "uid": uid or f"uid-{name}"}
    return Response(201, {}, msgspec.json.encode({**body, "metadata": {**stored, **metadata}}))


def refused(code: int, reason: str, retry_after: str = "", **details: Any) -> Response:
    """The Status of a rejected request."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "details": details}
    return Response(code, {"Retry-After": retry_after} if retry_after else {}, msgspec.json.encode(body))
