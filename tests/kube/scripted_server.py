"""A local HTTP server with scripted answers: for cases of the protocol that are rare with a real server.

It knows nothing of Kubernetes. Tests of decisions use a real control plane.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from grove.kube.auth.config import Config
from grove.kube.auth.credentials import Credentials, StaticCredentials

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScriptedServer:
    """Answers request after request from its script, and records the requests."""

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.seen: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.requested = asyncio.Event()  # set by the next request
        self.url = ""

    def config(self, credentials: Credentials | None = None, **more: Any) -> Config:
        return Config(server=self.url, credentials=credentials or StaticCredentials(), **more)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        self.seen.append(request)
        self.requested.set()
        self.requested = asyncio.Event()
        return await self.script.pop(0)(request)


@asynccontextmanager
async def serve(tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    """A scripted server on a free loopback port."""
    server = ScriptedServer()
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{tail:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


def reply(body: Any, status: int = 200, **headers: str) -> Answer:
    """A JSON reply (bytes are sent unchanged); underscores in header names become dashes."""
    header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=raw, status=status, headers=header_fields, content_type="application/json")

    return answer


def failure(code: int, reason: str = "", message: str = "", details: Any = None, **headers: str) -> Answer:
    """A reply with the metav1.Status of a failure."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return reply(body | ({"details": details} if details else {}), code, **headers)


async def close_connection(request: web.Request) -> web.StreamResponse:
    """Close the connection after the request was read, without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
