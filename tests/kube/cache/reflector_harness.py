"""A reflector with a scripted server: builders for watch events and streams, and a harness that waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from grove.kube.cache.cache import Cache, version_of
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import PODS, Resource
from grove.kube.client.retry import NO_RETRY, Backoff
from tests.kube.scripted_server import Answer, ScriptedServer, serve

FAST_BACKOFF = Backoff(first=0.001, longest=0.002)


def event(kind: str, name: str, version: int, **more: object) -> bytes:
    found = {
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": str(version)} | more
    }
    return msgspec.json.encode({"type": kind, "object": found}) + b"\n"


def bookmark(version: int, *, initial_end: bool = False) -> bytes:
    end = {"annotations": {"k8s.io/initial-events-end": "true"}} if initial_end else {}
    return (
        msgspec.json.encode(
            {
                "type": "BOOKMARK",
                "object": {"kind": "Pod", "metadata": {"resourceVersion": str(version)} | end},
            }
        )
        + b"\n"
    )


def error(code: int, reason: str) -> bytes:
    status = {"kind": "Status", "metadata": {}, "code": code, "reason": reason, "message": "too old"}
    return msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"


def stream(*pieces: bytes, tear: bool = False, stay: bool = False) -> Answer:
    """A watch that sends its pieces, then ends, breaks off (`tear`), or stays open in silence (`stay`)."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if stay:
            await asyncio.Event().wait()
        if tear:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


SILENT = stream(stay=True)


class ReflectorHarness:
    """A scripted server, a cache and its reflector; waits for contents of the cache and for requests."""

    def __init__(
        self, server: ScriptedServer, cache: Cache[Object], reflector: Reflector[Object, Object]
    ) -> None:
        self.server = server
        self.cache, self.reflector = cache, reflector
        self.changed = asyncio.Event()
        cache.subscribe(lambda old, new: self.changed.set())

    def cached(self) -> dict[str, int]:
        return {found.metadata.name: version_of(found) for found in self.cache}

    async def until_cached(self, **wanted: int) -> None:
        async with asyncio.timeout(60):
            while self.cached() != wanted:
                self.changed.clear()
                await self.changed.wait()

    async def until_requested(self, times: int) -> list[str]:
        """Wait for the n-th request; returns the queries so far."""
        async with asyncio.timeout(60):
            while len(self.server.seen) < times:
                await self.server.requested.wait()
        return [seen.query_string for seen in self.server.seen]


class FakeCrdWaiter:
    """A stand-in for the watch on CRDs: the resource is served once `arrived` is set."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()

    async def wait(self, resource: Resource, timeout: float) -> bool:
        await self.arrived.wait()
        return True


@asynccontextmanager
async def reflecting(
    *script: Answer, crd_waiter: FakeCrdWaiter | None = None, **options: bool
) -> AsyncIterator[ReflectorHarness]:
    async with serve() as server:
        server.script = [*script]
        async with Client(server.config(), retry=NO_RETRY) as client:
            cache = Cache(PODS, Object)
            reflector = Reflector(client, cache, backoff=FAST_BACKOFF, crd_watch=crd_waiter, **options)
            harness = ReflectorHarness(server, cache, reflector)
            running = asyncio.create_task(reflector.run())
            try:
                yield harness
            finally:
                running.cancel()
                await asyncio.wait([running])
