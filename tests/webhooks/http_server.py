"""The server of the webhooks on a port of its own, as the operator runs it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grove.kube.server.connections import ConnectionLimits
from grove.kube.server.listener import listening
from grove.kube.server.refusals import Refusals
from grove.operator.webhooks import LIMITS
from grove.webhooks import server
from grove.webhooks.reviewer import Reviewer

Address = tuple[str, int]


@asynccontextmanager
async def serving(
    reviewer: Reviewer, tls: ssl.SSLContext | None = None, limits: ConnectionLimits = LIMITS
) -> AsyncIterator[Address]:
    """Serves the reviewer; yields host and port."""
    refusals = Refusals("test")
    runner = server.runner(server.application(refusals, reviewer), refusals)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with listening(listener, runner, refusals, limits, tls):
            yield "127.0.0.1", int(listener.getsockname()[1])
