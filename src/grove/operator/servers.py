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
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from grove import timing
from grove.api.configuration.types import OperatorConfiguration
from grove.kube.certs.serving_context import SelfSignedContext
from grove.kube.client.client import Client
from grove.kube.server.access_review import AccessReviewer
from grove.kube.server.connections import ConnectionLimits
from grove.kube.server.listener import bind, bounded_runner, listening
from grove.kube.server.refusals import Refusal, Refusals
from grove.logger import get_logger
from grove.webhooks.registrations import SERVICE

log = get_logger("grove.operator")

_METRICS = "/metrics"
RespondFunction = Callable[[], web.Response]
NotReadyReasons = Callable[[], Awaitable[list[str]]]


class ListenError(Exception):
    """An address or a port cannot be bound; the message names the configuration key to change."""


LIMITS = ConnectionLimits(timing.SERVER_CONNECTIONS, timing.SERVER_CONNECTIONS_PER_PEER)


class Endpoint(Struct, frozen=True):
    """One address, its configuration key, and the application that is served there."""

    key: str
    host: str
    port: int
    runner: web.AppRunner
    refusals: Refusals
    limits: ConnectionLimits = LIMITS
    tls: ssl.SSLContext | None = None
    opened: Callable[[tuple[str, int]], None] = lambda _: None
    """Called with the address once the endpoint listens."""


def endpoints(
    config: OperatorConfiguration, not_ready_reasons: NotReadyReasons, client: Client
) -> Iterator[Endpoint]:
    """The endpoints of the configuration, without the webhooks. `/readyz` fails with the `not_ready_reasons`;
    the client reviews who reads metrics, if they are secure."""
    health, metrics, debugging = config.server.health_probes, config.server.metrics, config.debugging
    probes = {"/healthz": _handler(_alive), "/readyz": _readiness(not_ready_reasons)}
    yield _endpoint("server.healthProbes.port", health.bind_address, health.port, "probes", probes)
    refusals = Refusals("metrics")
    scraped = {_METRICS: _authorized(client, refusals) if metrics.secure else _handler(_metrics)}
    tls = SelfSignedContext(SERVICE).context if metrics.secure else None
    where = metrics.bind_address, metrics.port
    yield _endpoint("server.metrics.port", *where, "metrics", scraped, refusals, tls)
    if debugging is not None and debugging.enable_profiling:
        host, port = debugging.pprof_bind_host, debugging.pprof_bind_port
        tasks = {"/debug/tasks": _handler(_tasks)}
        yield _endpoint("debugging.pprofBindPort", host, port, "debugging", tasks)


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
    with listener:
        async with listening(listener, runner, endpoint.refusals, endpoint.limits, endpoint.tls):
            host, port = listener.getsockname()[:2]
            endpoint.opened((host, port))
            paths = " ".join(_paths(runner.app))
            log.info("listening", key=endpoint.key, action="serve", reason=paths, host=host, port=port)
            yield


def _endpoint(
    key: str,
    host: str,
    port: int,
    server: str,
    routes: dict[str, Handler],
    refusals: Refusals | None = None,
    tls: ssl.SSLContext | None = None,
) -> Endpoint:
    application, refusals = web.Application(), refusals or Refusals(server)
    for path, handler in routes.items():
        application.router.add_get(path, handler)
    return Endpoint(key, host, port, bounded_runner(application, refusals), refusals, tls=tls)


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


def _authorized(client: Client, refusals: Refusals) -> Handler:
    """Metrics for those whose token the API server accepts for them."""
    reviewer = AccessReviewer(client)

    async def handle(request: web.Request) -> web.StreamResponse:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        status = await reviewer.status(token.strip() if scheme.lower() == "bearer" else "", _METRICS)
        if status is HTTPStatus.OK:
            return _metrics()
        why = f"{status.value} {status.phrase}: send the token of a subject that may get {_METRICS}"
        refusals.record(Refusal.UNAUTHORIZED, why, request.remote or "")
        challenge = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
        return web.Response(status=status, text=f"{why}\n", headers=challenge)

    return handle


def _listen(endpoint: Endpoint, any_port: bool) -> socket.socket:
    try:
        return bind(endpoint.host, endpoint.port)
    except OSError as problem:
        where = f"{endpoint.host or '*'}:{endpoint.port}"
        busy = problem.errno == errno.EADDRINUSE
        if busy and any_port:
            reason = f"{where} is in use, perhaps by another operator"
            log.warning("port in use", key=endpoint.key, action="listen on a free port", reason=reason)
            return bind(endpoint.host, 0)
        remedy = "choose another port, or 0 for any free one" if busy else "check the address"
        # Failed name resolution has errno values of its own, below 0, with a fitting strerror.
        number = problem.errno or 0
        why = os.strerror(number) if number > 0 else problem.strerror
        raise ListenError(f"{endpoint.key}: cannot listen on {where} ({why}): {remedy}") from None


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
