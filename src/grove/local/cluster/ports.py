"""Loopback ports: chooses free ones, and checks whether one is in use."""

from __future__ import annotations

import random
import socket

from grove.local.errors import LocalError
from grove.local.state_dir import Ports

# Below the ephemeral range of outgoing connections, so that a chosen port stays free.
_FIRST, _LAST = 20_000, 32_000


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def is_open(port: int) -> bool:
    """Whether a process listens on the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def choose(asked_for: int) -> Ports:
    """Free ports for all components; `asked_for` is the port of the API server, 0 for any."""
    if not 0 <= asked_for <= 65_535:
        raise LocalError(f"--port {asked_for}: choose a port up to 65535, or 0 for any free one")
    if asked_for and not is_free(asked_for):
        raise LocalError(
            f"port {asked_for} is taken by another program: choose another with --port, or 0 for any free one"
        )
    names = [name for name in Ports.__struct_fields__ if not (asked_for and name == "apiserver")]
    ports = dict(zip(names, free(len(names)), strict=True))
    return Ports(**{"apiserver": asked_for, **ports})


def free(count: int) -> list[int]:
    """So many free ports."""
    candidates = range(_FIRST, _LAST)
    found: list[int] = []
    for port in random.sample(candidates, len(candidates)):
        if is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise LocalError(f"no free ports between {_FIRST} and {_LAST}")
