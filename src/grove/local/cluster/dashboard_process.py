"""The dashboard process of a local cluster: started by `grove demo`, stopped by `grove down`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from grove.kube.auth import config
from grove.local.cluster import ports
from grove.local.cluster.health import Probe, health_problem, wait_until_healthy
from grove.local.cluster.pki import Pki
from grove.local.cluster.processes import Process, find_process, spawn, stop, tail
from grove.local.errors import LocalError
from grove.local.private_files import write_private
from grove.local.state_dir import StateDir

DASHBOARD = "dashboard"
_TIMEOUT_SECONDS = 5.0


class _Started(msgspec.Struct, frozen=True):
    """What the process was started with: a restarted API server may have another address."""

    port: int
    server: str


def has_dashboard(state: StateDir) -> bool:
    """Whether the dashboard of this cluster runs."""
    return find_process(state.pid(DASHBOARD)) is not None


async def ensure_dashboard(state: StateDir) -> str:
    """The address of the dashboard, which is started if it does not run. Raises LocalError."""
    server, started = config.load(state.kubeconfig).server, _stored(state)
    if started is not None and started.server == server and has_dashboard(state):
        problem = await asyncio.to_thread(health_problem, _probe(started.port), _ca(state))
        if not problem:
            return _address(started.port)
    stop_dashboard(state)
    port = started.port if started is not None and ports.is_free(started.port) else ports.free(1)[0]
    write_private(_file(state), msgspec.json.encode(_Started(port, server)))
    process = _spawn(state, port)
    try:
        await _until_ready(state, process, port)
    except BaseException:
        stop_dashboard(state)
        raise
    return _address(port)


def stop_dashboard(state: StateDir) -> bool:
    """Stop the dashboard. Returns whether it was running."""
    process = find_process(state.pid(DASHBOARD))
    if process is not None:
        stop(process, _TIMEOUT_SECONDS)
    state.pid(DASHBOARD).unlink(missing_ok=True)
    return process is not None


def _spawn(state: StateDir, port: int) -> Process:
    program = str(Path(sys.executable).with_name("grove"))
    command = [
        program, "dashboard", "--kubeconfig", str(state.kubeconfig), "--port", str(port), "--no-browser",
    ]  # fmt: skip
    state.log(DASHBOARD).unlink(missing_ok=True)  # one log per start
    return spawn(command, state.log(DASHBOARD), state.pid(DASHBOARD))


async def _until_ready(state: StateDir, process: Process, port: int) -> None:
    cancelled = False

    def check() -> None:
        if cancelled or not process.alive:
            log = state.log(DASHBOARD)
            raise LocalError(f"the dashboard has exited; last lines of {log}:\n{tail(log)}")

    try:
        await asyncio.to_thread(wait_until_healthy, _probe(port), _ca(state), check)
    finally:
        cancelled = True  # ends the thread after an interrupt


def _probe(port: int) -> Probe:
    return Probe(DASHBOARD, port, "/readyz", plain=True)


def _ca(state: StateDir) -> Path:
    return Pki(state.pki).pair("ca").cert


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}/"


def _stored(state: StateDir) -> _Started | None:
    try:
        return msgspec.json.decode(_file(state).read_bytes(), type=_Started)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _file(state: StateDir) -> Path:
    return state.config("dashboard.json")
