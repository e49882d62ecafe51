"""Is a part up? Asked from outside, by connecting to it and reading its health endpoint."""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from grove.local.cluster import ports
from grove.local.errors import LocalError

_TIMEOUT_SECONDS = 240.0  # seconds for what takes five on an idle machine
_PAUSE = 0.05  # no part says by itself that it is ready


class Probe(NamedTuple):
    """A part, where it listens, and what to ask it; without a path an open port is enough."""

    part: str
    port: int
    path: str = ""


def wait_until_healthy(probe: Probe, ca: Path, meanwhile: Callable[[], None]) -> None:
    """Ask until the answer is yes; `meanwhile` raises when waiting has become pointless."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while trouble := health_problem(probe, ca):
        meanwhile()
        if time.monotonic() > deadline:
            raise LocalError(f"{probe.part} did not become ready within {_TIMEOUT_SECONDS:.0f} s: {trouble}")
        time.sleep(_PAUSE)


def health_problem(probe: Probe, ca: Path) -> str:
    """What is wrong with a part, in a few words; empty if nothing is."""
    if not probe.path:
        return "" if ports.is_open(probe.port) else "nobody listens on its port"
    connection = http.client.HTTPSConnection(
        "127.0.0.1", probe.port, timeout=5, context=ssl.create_default_context(cafile=str(ca))
    )
    try:
        connection.request("GET", probe.path)
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"no answer on its port ({error})"
    finally:
        connection.close()
    failed = [line for line in body.splitlines() if line.startswith("[-]")]
    return "" if answer.status == 200 else "; ".join(failed) or f"answers {answer.status}"
