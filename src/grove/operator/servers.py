"""The HTTP servers of the operator: probes, metrics, webhooks and, if enabled, its asyncio tasks.

Every operator replica serves them, leader or not. Port 0 takes any free port; the log shows which. Without a
configuration file, a port that is in use is replaced by a free one.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from grove import timing
from grove.api.configuration.types import OperatorConfiguration

log = structlog.get_logger("grove.operator")

RespondFunction = Callable[[], web.Response]
NotReadyReasons = Callable[[], Awaitable[list[str]]]


class ListenError(Exception):
    """An address or a port cannot be bound; the message names the configuration key to change."""


class Endpoint(Struct, frozen=True):
    """One address, its configuration key, and the application that is served there."""

    key: str
    host: str
    port: int
    runner: web.AppRunner
    tls: ssl.SSLContext | None = None
    opened: Callable[[tuple[str, int]], None] = lambda _: None
    """Called with the address once the endpoint listens."""


def endpoints(config: OperatorConfiguration, not_ready_reasons: NotReadyReasons) -> Iterator[Endpoint]:
    """The plain HTTP endpoints of the configuration. `/readyz` fails with the `not_ready_reasons`."""
    health, metrics, debugging = config.server.health_probes, config.server.metrics, config.debugging
    probes = {"/healthz": _handler(_alive), "/readyz": _readiness(not_ready_reasons)}
    yield Endpoint("server.healthProbes.port", health.bind_address, health.port, _runner(probes))
    metrics_runner = _runner({"/metrics": _handler(_metrics)})
    yield Endpoint("server.metrics.port", metrics.bind_address, metrics.port, metrics_runner)
    if debugging is not None and debugging.enable_profiling:
        host, port = debugging.pprof_bind_host, debugging.pprof_bind_port
        yield Endpoint("debugging.pprofBindPort", host, port, _runner({"/debug/tasks": _handler(_tasks)}))


@asynccontextmanager
async def serving(endpoints: Iterable[Endpoint], *, any_port: bool = False) -> AsyncIterator[None]:
    """Serve all these endpoints while the body runs; with `any_port`, on a free port where theirs is in use.
    Raises ListenError."""
    async with AsyncExitStack() as stack:
        for endpoint in endpoints:
            await stack.enter_async_context(_serving(endpoint, any_port))
        yield


@asynccontextmanager
async def _serving(endpoint: Endpoint, any_port: bool) -> AsyncIterator[None]:
    listener, runner = _listen(endpoint, any_port), endpoint.runner
    await runner.setup()
    try:
        await web.SockSite(runner, listener, ssl_context=endpoint.tls).start()
        host, port = listener.getsockname()[:2]
        endpoint.opened((host, port))
        paths = " ".join(_paths(runner.app))
        log.info("listening", key=endpoint.key, action="serve", reason=paths, host=host, port=port)
        yield
    finally:
        await runner.cleanup()
        listener.close()


def _runner(routes: dict[str, Handler]) -> web.AppRunner:
    application = web.Application()
    for path, handler in routes.items():
        application.router.add_get(path, handler)
    return web.AppRunner(application, access_log=None, shutdown_timeout=timing.SERVER_STOP_TIMEOUT)


def _paths(application: web.Application) -> list[str]:
    return [resource.canonical for resource in application.router.resources()]


def _readiness(not_ready_reasons: NotReadyReasons) -> Handler:
    async def handle(_request: web.Request) -> web.StreamResponse:
        if waiting := await not_ready_reasons():
            return web.Response(status=503, text=f"waiting for {', '.join(waiting)}\n")
        return _alive()

    return handle


def _handler(respond: RespondFunction) -> Handler:
    async def handle(_request: web.Request) -> web.StreamResponse:
        return respond()

    return handle


def _listen(endpoint: Endpoint, any_port: bool) -> socket.socket:
    try:
        return _bind(endpoint.host, endpoint.port)
    except OSError as problem:
        where = f"{endpoint.host or '*'}:{endpoint.port}"
        busy = problem.errno == errno.EADDRINUSE
        if busy and any_port:
            reason = f"{where} is in use, perhaps by another operator"
            log.warning("port in use", key=endpoint.key, action="listen on a free port", reason=reason)
            return _bind(endpoint.host, 0)
        remedy = "choose another port, or 0 for any free one" if busy else "check the address"
        # Failed name resolution has errno values of its own, below 0, with a fitting strerror.
        number = problem.errno or 0
        why = os.strerror(number) if number > 0 else problem.strerror
        raise ListenError(f"{endpoint.key}: cannot listen on {where} ({why}): {remedy}") from None


def _bind(host: str, port: int) -> socket.socket:
    """Bind a socket; without a host to all addresses, of both families where the machine has both."""
    if not host and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as problem:
            if problem.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def _alive() -> web.Response:
    return web.Response(text="ok\n")


def _metrics() -> web.Response:
    return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _tasks() -> web.Response:
    """The stack of each asyncio task."""
    output = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        output.write(f"{task.get_name()}\n")
        task.print_stack(file=output)
    return web.Response(text=output.getvalue())
