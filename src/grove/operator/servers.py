"""What the operator answers on plain HTTP: its probes, its metrics and, if wanted, what it is doing.

Every replica answers, leader or not. A port of 0 takes any free one; the log says which.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from grove.api.config import OperatorConfiguration

log = structlog.get_logger("grove.operator")

Answer = Callable[[], web.Response]


class CannotListen(Exception):
    """An address or a port cannot be had; the message names the key to change."""


class Endpoint(Struct, frozen=True):
    """One address, the configuration's key for it, and what is answered there."""

    key: str
    host: str
    port: int
    routes: dict[str, Answer]


def endpoints(config: OperatorConfiguration, unsynced: Callable[[], list[str]]) -> Iterator[Endpoint]:
    """What the configuration asks for."""
    health, metrics, debugging = config.server.health_probes, config.server.metrics, config.debugging
    probes = {"/healthz": _alive, "/readyz": lambda: _ready(unsynced())}
    yield Endpoint("server.healthProbes.port", health.bind_address, health.port, probes)
    yield Endpoint("server.metrics.port", metrics.bind_address, metrics.port, {"/metrics": _metrics})
    if debugging is not None and debugging.enable_profiling:
        host, port = debugging.pprof_bind_host, debugging.pprof_bind_port
        yield Endpoint("debugging.pprofBindPort", host, port, {"/debug/tasks": _tasks})


@asynccontextmanager
async def serving(wanted: Iterator[Endpoint]) -> AsyncIterator[None]:
    """Answer at all these places while the body runs. Raises CannotListen."""
    async with AsyncExitStack() as stack:
        for endpoint in wanted:
            await stack.enter_async_context(_serving(endpoint))
        yield


@asynccontextmanager
async def _serving(endpoint: Endpoint) -> AsyncIterator[None]:
    listener = _listen(endpoint)
    runner = web.AppRunner(_application(endpoint.routes), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        host, port = listener.getsockname()[:2]
        paths = " ".join(endpoint.routes)
        log.info("listening", key=endpoint.key, action="serve", reason=paths, host=host, port=port)
        yield
    finally:
        await runner.cleanup()
        listener.close()


def _application(routes: dict[str, Answer]) -> web.Application:
    application = web.Application()
    for path, answer in routes.items():
        application.router.add_get(path, _handler(answer))
    return application


def _handler(answer: Answer) -> Handler:
    async def handle(_request: web.Request) -> web.StreamResponse:
        return answer()

    return handle


def _listen(endpoint: Endpoint) -> socket.socket:
    try:
        return _bind(endpoint.host, endpoint.port)
    except OSError as problem:
        where = f"{endpoint.host or '*'}:{endpoint.port}"
        busy = problem.errno == errno.EADDRINUSE
        remedy = "choose another, or 0 for any free one" if busy else "check the address"
        # Names that cannot be resolved have numbers of their own, below 0, and words that fit.
        number = problem.errno or 0
        why = os.strerror(number) if number > 0 else problem.strerror
        raise CannotListen(f"{endpoint.key}: cannot listen on {where} ({why}): {remedy}") from None


def _bind(host: str, port: int) -> socket.socket:
    """Without a host, all addresses: those of both families where the machine has both."""
    if not host and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as problem:
            if problem.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def _alive() -> web.Response:
    return web.Response(text="ok\n")


def _ready(unsynced: list[str]) -> web.Response:
    if unsynced:
        return web.Response(status=503, text=f"waiting for {', '.join(unsynced)}\n")
    return web.Response(text="ok\n")


def _metrics() -> web.Response:
    return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _tasks() -> web.Response:
    """Where each task stands."""
    told = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        told.write(f"{task.get_name()}\n")
        task.print_stack(file=told)
    return web.Response(text=told.getvalue())
