"""Listens for browsers: on which address, with which certificate."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from grove import timing
from grove.kube.certs.serving_context import FileServingContext, SelfSignedContext
from grove.kube.errors import ConfigError
from grove.kube.server.connections import ConnectionLimits
from grove.kube.server.listener import bind, bounded_runner, listening
from grove.kube.server.refusals import Refusals

LIMITS = ConnectionLimits(timing.DASHBOARD_CONNECTIONS, timing.DASHBOARD_CONNECTIONS_PER_PEER)
_PORTS = range(2**16)


def listen(host: str, port: int | None) -> socket.socket:
    """A socket on a port; without one on the usual port, or on a free one if that is in use. Raises
    ConfigError."""
    if port is not None and port not in _PORTS:
        raise ConfigError(f"--port {port} is not a port: give a number from 0 to {_PORTS[-1]}")
    wanted = timing.DASHBOARD_PORT if port is None else port
    try:
        try:
            return bind(host, wanted)
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE or port is not None:
                raise
            return bind(host, 0)
    except OSError as problem:
        number = problem.errno or 0
        # Failed name resolution has errno values of its own, below 0, and a text that repeats the address.
        why = os.strerror(number) if number > 0 else str(problem.strerror).partition(" (")[0]
        busy = number == errno.EADDRINUSE
        remedy = "give another --port, or none for any free one" if busy else "check --bind and --port"
        raise ConfigError(f"cannot listen on {host or '*'}:{wanted} ({why}): {remedy}") from None


def tls_context(folder: Path | None) -> ssl.SSLContext:
    """The certificate of a folder, which is read again when it changes; without a folder one of our own.
    Raises ConfigError."""
    if folder is None:
        return SelfSignedContext("localhost", "127.0.0.1", "::1").context
    return FileServingContext(folder / "tls.crt", folder / "tls.key").context


def address(listener: socket.socket, *, tls: bool) -> str:
    """The URL of the page."""
    host, port = listener.getsockname()[:2]
    shown = "localhost" if host in ("::", "0.0.0.0") else f"[{host}]" if ":" in host else host  # noqa: S104
    return f"{'https' if tls else 'http'}://{shown}:{port}/"


@asynccontextmanager
async def serving(
    listener: socket.socket, app: web.Application, refusals: Refusals, tls: ssl.SSLContext | None
) -> AsyncIterator[None]:
    """Serve the application while the body runs; then all streams end."""
    runner = bounded_runner(app, refusals, cancels=True)
    async with listening(listener, runner, refusals, LIMITS, tls):
        yield
