"""Loopback ports: chooses free ones, and checks whether one is in use."""

from __future__ import annotations

import random
import socket
import time

from grove.local.errors import LocalError
from grove.local.state_dir import Ports

# Below the ephemeral range of outgoing connections, so that a chosen port stays free.
_FIRST, _LAST = 20_000, 32_000
# A killed process is a zombie before its last thread has ended, and its ports are in use until then.
_RELEASE_SECONDS = 2.0
_PAUSE = 0.02  # seconds; a port that is released is not reported


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


def choose(asked_for: int, before: Ports | None = None) -> Ports:
    """Free ports for all components: those of `before` that are still free, and others. `asked_for` is the
    port of the API server, 0 for any."""
    if not 0 <= asked_for <= 65_535:
        raise LocalError(f"--port {asked_for}: choose a port up to 65535, or 0 for any free one")
    if asked_for and not is_free(asked_for):
        raise LocalError(
            f"port {asked_for} is taken by another program: choose another with --port, or 0 for any free one"
        )
    kept = {name: getattr(before, name) for name in Ports.__struct_fields__} if before is not None else {}
    if asked_for:
        kept["apiserver"] = asked_for
    deadline = time.monotonic() + _RELEASE_SECONDS
    kept = {name: port for name, port in kept.items() if becomes_free(port, deadline)}
    names = [name for name in Ports.__struct_fields__ if name not in kept]
    chosen = free(len(names), frozenset(kept.values()))
    return Ports(**kept, **dict(zip(names, chosen, strict=True)))


def becomes_free(port: int, deadline: float | None = None) -> bool:
    """Whether the port is free, now or until the deadline: by default within the time that a killed process
    needs to release it."""
    deadline = deadline if deadline is not None else time.monotonic() + _RELEASE_SECONDS
    while not is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE)
    return True


def free(count: int, in_use: frozenset[int] = frozenset()) -> list[int]:
    """So many free ports, none of them `in_use`."""
    candidates = range(_FIRST, _LAST)
    found: list[int] = []
    for port in random.sample(candidates, len(candidates)):
        if len(found) == count:
            return found
        if port not in in_use and is_free(port):
            found.append(port)
    raise LocalError(f"no free ports between {_FIRST} and {_LAST}")
