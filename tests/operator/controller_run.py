"""A controller on one set, with an API server in memory that rejects some requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from grove.api.intents import EventRecord
from grove.kube.client.transport import Request, Response
from grove.kube.executor.cache_store import CacheStore
from grove.kube.executor.executor import Executor
from grove.operator.caches.registry import Caches
from grove.operator.controller import Controller
from tests.plan.builders import a_set, read_set
from tests.plan.simulator.api_server import ApiServer, Conflict, NotFound

KINDS = {
    "podcliquesets": "PodCliqueSet",
    "podcliques": "PodClique",
    "podgangs": "PodGang",
    "services": "Service",
    "pods": "Pod",
    "resourceclaims": "ResourceClaim",
}
Body = dict[str, Any]
Reject = Callable[[Request, Body], Response | None]


def error_reply(code: int, reason: str, **details: Any) -> Response:
    status = {"kind": "Status", "code": code, "reason": reason, "message": "no", "details": details}
    return Response(code, {}, msgspec.json.encode(status))


def no_quota() -> Response:
    return error_reply(403, "Forbidden")


def namespace_terminating() -> Response:
    cause = {"reason": "NamespaceTerminating", "message": "no", "field": "metadata.namespace"}
    return error_reply(403, "Forbidden", causes=[cause])


class RejectingTransport:
    """An API server in memory that rejects some requests."""

    def __init__(self, reject: Reject) -> None:
        self.reject, self.api = reject, ApiServer(lambda: "2026-01-01T00:00:00Z")
        self.requests: list[tuple[Request, Body]] = []

    async def send(self, request: Request) -> Response:
        body: Body = msgspec.json.decode(request.body) if request.body else {}
        self.requests.append((request, body))
        if rejected := self.reject(request, body):
            return rejected
        kind = KINDS[request.resource.partition(".")[0]]
        try:
            stored = self._do(request, kind, body)
        except Conflict:
            return error_reply(409, "Conflict")
        except NotFound:
            return error_reply(404, "NotFound", name=request.name)
        return Response(200, {}, msgspec.json.encode(stored))

    def _do(self, request: Request, kind: str, body: Body) -> Body:
        if request.verb == "create":
            return self.api.create(body)
        if request.verb == "patch":
            status = "/status" in request.path
            return self.api.patch(kind, request.name, body, status=status)
        assert request.verb == "get", request
        return self.api.get(kind, request.name)

    def sent(self, verb: str, resource: str) -> list[Body]:
        return [
            body for request, body in self.requests if (request.verb, request.resource) == (verb, resource)
        ]

    def stream(self, request: Request) -> Any:
        raise AssertionError("no watch is expected")

    async def close(self) -> None: ...


class ControllerRun:
    """A controller with one set, of `a:2` by default, that runs for as long as a test lets it."""

    def __init__(self, reject: Reject, replicas: int = 1, cliques: str = "a:2", **template: Any) -> None:
        self.transport, self.caches = RejectingTransport(reject), Caches()
        self.emitted: list[EventRecord] = []
        executor = Executor(self.transport, self.caches.resources, store=CacheStore(self.caches.all))
        self.controller = Controller(self.caches, executor, self.emitted.append)
        body = a_set(cliques, replicas=replicas, **template)
        self.caches.sets.apply_event("ADDED", read_set(self.transport.api.create(body)))

    async def work(self, seconds: float) -> None:
        self.controller.queue.start()
        await asyncio.sleep(seconds)
        await self.controller.queue.stop()
