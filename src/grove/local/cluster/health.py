"""Health of a component, from its port and its health endpoint."""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from grove.local.cluster import ports
from grove.local.errors import LocalError

_TIMEOUT_SECONDS = 240.0  # start-up takes five seconds on an idle machine
_PAUSE = 0.05  # seconds; components do not signal that they are ready


class Probe(NamedTuple):
    """A component, its port, and the path of its health endpoint; without a path an open port is enough.
    `plain`: without TLS."""

    part: str
    port: int
    path: str = ""
    plain: bool = False


def wait_until_healthy(probe: Probe, ca: Path, meanwhile: Callable[[], None]) -> None:
    """Wait until the component is healthy; `meanwhile` raises if it cannot become so any more."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while problem := health_problem(probe, ca):
        meanwhile()
        if time.monotonic() > deadline:
            raise LocalError(f"{probe.part} did not become ready within {_TIMEOUT_SECONDS:.0f} s: {problem}")
        time.sleep(_PAUSE)


def health_problem(probe: Probe, ca: Path) -> str:
    """Why a component is unhealthy; empty if it is healthy."""
    if not probe.path:
        return "" if ports.is_open(probe.port) else "nothing listens on its port"
    connection = (
        http.client.HTTPConnection("127.0.0.1", probe.port, timeout=5)
        if probe.plain
        else http.client.HTTPSConnection(
            "127.0.0.1", probe.port, timeout=5, context=ssl.create_default_context(cafile=str(ca))
        )
    )
    try:
        connection.request("GET", probe.path)
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"no answer on its port ({error})"
    finally:
        connection.close()
    failed = [line for line in body.splitlines() if line.startswith(("[-]", "waiting for"))]
    return "" if answer.status == 200 else "; ".join(failed) or f"answers {answer.status}"
