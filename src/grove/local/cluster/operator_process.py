"""The operator process of a local cluster: started by `grove up --operator` and `grove demo`, stopped by
`grove down`. It runs as an installed one does: with webhooks, and with the rights of the chart."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from grove.api.naming.well_known import OperatorEnv
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.errors import ConfigError
from grove.local.cluster import operator_install, ports
from grove.local.cluster.health import Probe, wait_until_healthy
from grove.local.cluster.pki import Pki
from grove.local.cluster.processes import Process, find_process, spawn, stop, tail
from grove.local.errors import LocalError
from grove.local.private_files import write_private
from grove.local.state_dir import StateDir

OPERATOR = "operator"
_IMAGE = "grove.local/initc"  # never pulled: on KWOK's nodes a stand-in runs init containers
_HOST = "127.0.0.1"
_TIMEOUT_SECONDS = 5.0


class OperatorPorts(msgspec.Struct, frozen=True):
    """The ports of the operator; stored, so that a restart uses the same ones if they are free."""

    webhooks: int
    health: int
    metrics: int


def operator_of(state: StateDir) -> Process | None:
    """The running operator that an earlier command has started."""
    return find_process(state.pid(OPERATOR))


def has_operator(state: StateDir) -> bool:
    """Whether the cluster was last used with an operator."""
    return _ports_file(state).exists()


async def ensure_operator(state: StateDir, client: Client) -> Process:
    """The operator of this cluster, ready; it is installed and started if it does not run. The CRDs are
    installed by the caller. If it does not become ready, it is stopped, and its webhooks are removed unless
    there was an operator before: without it they refuse every write."""
    server = config.load(state.kubeconfig).server
    running, existed = operator_of(state), has_operator(state)
    chosen = _stored_ports(state)
    if running is not None and chosen is not None and _server_of_operator(state) == server:
        await _until_ready(state, running, chosen)
        return running
    stop_operator(state)  # it was started for another address of the API server
    chosen = _choose_ports(state)
    try:
        await operator_install.install(client, f"https://{_HOST}:{chosen.webhooks}")
        kubeconfig, ca = _kubeconfig(state), Pki(state.pki).pair("ca").cert
        await operator_install.write_kubeconfig(client, server, ca, kubeconfig)
        process = _spawn(state, chosen, kubeconfig)
        await _until_ready(state, process, chosen)
    except BaseException:
        stop_operator(state)
        if not existed:
            await remove_operator(state, client)
        raise
    return process


async def _until_ready(state: StateDir, process: Process, chosen: OperatorPorts) -> None:
    cancelled = False

    def check() -> None:
        if cancelled or not process.alive:
            raise _exited(state)

    probe = Probe(OPERATOR, chosen.health, "/readyz", plain=True)
    try:
        await asyncio.to_thread(wait_until_healthy, probe, Pki(state.pki).pair("ca").cert, check)
    finally:
        cancelled = True  # ends the thread after an interrupt


def _kubeconfig(state: StateDir) -> Path:
    return state.config("operator.kubeconfig")


def _server_of_operator(state: StateDir) -> str:
    """The API server that the operator was started for; empty if that is not known."""
    try:
        return config.load(_kubeconfig(state)).server
    except ConfigError:
        return ""


def _spawn(state: StateDir, chosen: OperatorPorts, kubeconfig: Path) -> Process:
    file = state.config("operator.yaml")
    record = state.read()
    fabric = record is not None and record.settings.fabric
    write_private(file, msgspec.json.format(msgspec.json.encode(_configuration(chosen, fabric))))
    program = str(Path(sys.executable).with_name("grove"))
    command = [
        program, "operator", "--config", str(file), "--kubeconfig", str(kubeconfig),
        "--namespace", operator_install.NAMESPACE,
    ]  # fmt: skip
    state.log(OPERATOR).unlink(missing_ok=True)  # one log per start
    environment = {
        OperatorEnv.INIT_IMAGE.value: _IMAGE,
        OperatorEnv.SERVICE_ACCOUNT.value: operator_install.ACCOUNT,
    }
    return spawn(command, state.log(OPERATOR), state.pid(OPERATOR), environment)


def _configuration(chosen: OperatorPorts, fabric: bool) -> dict[str, object]:
    return {
        "logFormat": "text",
        "topologyAwareScheduling": {"enabled": True},
        "network": {"autoMNNVLEnabled": fabric},
        "scheduler": {"profiles": [{"name": "default-scheduler", "config": {"placement": "All"}}]},
        # Longer than the defaults: it shares a busy machine with the control plane.
        "leaderElection": {"enabled": True, "leaseDuration": "40s", "renewDeadline": "30s"},
        "server": {
            "webhooks": {"port": chosen.webhooks, "bindAddress": _HOST},
            "healthProbes": {"port": chosen.health, "bindAddress": _HOST},
            "metrics": {"port": chosen.metrics, "bindAddress": _HOST},
        },
    }


def _choose_ports(state: StateDir) -> OperatorPorts:
    chosen = _stored_ports(state)
    if chosen is None or not all(map(ports.is_free, msgspec.structs.astuple(chosen))):
        chosen = OperatorPorts(*ports.free(3))
        write_private(_ports_file(state), msgspec.json.encode(chosen))
    return chosen


def _stored_ports(state: StateDir) -> OperatorPorts | None:
    try:
        return msgspec.json.decode(_ports_file(state).read_bytes(), type=OperatorPorts)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _ports_file(state: StateDir) -> Path:
    return state.config("operator-ports.json")


async def remove_operator(state: StateDir, client: Client) -> bool:
    """Stop the operator for good, and delete its webhook configurations. Returns whether there was one."""
    existed = has_operator(state)
    stop_operator(state)
    await operator_install.uninstall_webhooks(client)
    _ports_file(state).unlink(missing_ok=True)
    return existed


def stop_operator(state: StateDir) -> bool:
    """Stop the operator. Returns whether one was running."""
    process = operator_of(state)
    if process is not None:
        stop(process, _TIMEOUT_SECONDS)
    state.pid(OPERATOR).unlink(missing_ok=True)
    return process is not None


async def raise_when_exited(state: StateDir, process: Process) -> None:
    """Raises LocalError with the last lines of its log when the operator exits."""
    ended = asyncio.Event()
    if hasattr(os, "pidfd_open"):  # elsewhere there is no notification: the caller's timeout ends the wait
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            ended.set()
        else:
            loop = asyncio.get_running_loop()
            loop.add_reader(descriptor, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
    await ended.wait()
    raise _exited(state)


def _exited(state: StateDir) -> LocalError:
    log = state.log(OPERATOR)
    return LocalError(f"the operator has exited; last lines of {log}:\n{tail(log)}")
