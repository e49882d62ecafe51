"""The operator beside a local cluster: a process of its own, known to later commands, gone with `down`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from grove.api.naming.well_known import OperatorEnv
from grove.local.cluster.pki import write_private
from grove.local.cluster.processes import Process, find_process, spawn, stop, tail
from grove.local.errors import LocalError
from grove.local.state_dir import StateDir

OPERATOR = "operator"
_IMAGE = "grove.local/initc"  # nobody pulls it: on KWOK's nodes a stand-in runs init containers
_CONFIGURATION = """\
logFormat: text
leaderElection: {enabled: true, leaseDuration: 40s, renewDeadline: 30s}  # it shares a busy machine
server:
  webhooks: {port: 0, bindAddress: 127.0.0.1}
  healthProbes: {port: 0, bindAddress: 127.0.0.1}
  metrics: {port: 0, bindAddress: 127.0.0.1}
"""
_TIMEOUT_SECONDS = 5.0


def operator_of(state: StateDir) -> Process | None:
    """The operator that an earlier command started and that still runs."""
    return find_process(state.pid(OPERATOR))


def ensure_operator(state: StateDir) -> Process:
    """The operator that runs beside this cluster, started if there is none."""
    if running := operator_of(state):
        return running
    file = state.config("operator.yaml")
    write_private(file, _CONFIGURATION.encode())
    program = str(Path(sys.executable).with_name("grove"))
    command = [program, "operator", "--config", str(file), "--kubeconfig", str(state.kubeconfig)]
    state.log(OPERATOR).unlink(missing_ok=True)  # one start, one log
    return spawn(command, state.log(OPERATOR), state.pid(OPERATOR), {OperatorEnv.INIT_IMAGE.value: _IMAGE})


def stop_operator(state: StateDir) -> bool:
    """Stop it. Says whether there was one."""
    process = operator_of(state)
    if process is not None:
        stop(process, _TIMEOUT_SECONDS)
    state.pid(OPERATOR).unlink(missing_ok=True)
    return process is not None


async def raise_when_exited(state: StateDir, process: Process) -> None:
    """Raises LocalError when the operator ends, and tells what it said last."""
    ended = asyncio.Event()
    if hasattr(os, "pidfd_open"):  # elsewhere nobody tells us, and what waits for the operator gives up
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
    log = state.log(OPERATOR)
    raise LocalError(f"the operator has ended; the end of {log}:\n{tail(log)}")
