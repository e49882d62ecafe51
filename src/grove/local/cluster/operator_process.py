"""The operator process of a local cluster: started by `grove demo`, stopped by `grove down`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from grove.api.naming.well_known import OperatorEnv
from grove.local.cluster.processes import Process, find_process, spawn, stop, tail
from grove.local.errors import LocalError
from grove.local.private_files import write_private
from grove.local.state_dir import StateDir

OPERATOR = "operator"
_IMAGE = "grove.local/initc"  # never pulled: on KWOK's nodes a stand-in runs init containers
_CONFIGURATION = """\
logFormat: text
topologyAwareScheduling: {enabled: true}
scheduler:
  profiles: [{name: default-scheduler, config: {placement: All}}]
leaderElection: {enabled: true, leaseDuration: 40s, renewDeadline: 30s}  # it shares a busy machine
server:
  webhooks: {port: 0, bindAddress: 127.0.0.1}
  healthProbes: {port: 0, bindAddress: 127.0.0.1}
  metrics: {port: 0, bindAddress: 127.0.0.1}
"""
_TIMEOUT_SECONDS = 5.0


def operator_of(state: StateDir) -> Process | None:
    """The running operator that an earlier command has started."""
    return find_process(state.pid(OPERATOR))


def ensure_operator(state: StateDir) -> Process:
    """The operator of this cluster; starts it if it does not run."""
    if running := operator_of(state):
        return running
    file = state.config("operator.yaml")
    write_private(file, _CONFIGURATION.encode())
    program = str(Path(sys.executable).with_name("grove"))
    command = [program, "operator", "--config", str(file), "--kubeconfig", str(state.kubeconfig)]
    state.log(OPERATOR).unlink(missing_ok=True)  # one log per start
    return spawn(command, state.log(OPERATOR), state.pid(OPERATOR), {OperatorEnv.INIT_IMAGE.value: _IMAGE})


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
    log = state.log(OPERATOR)
    raise LocalError(f"the operator has exited; last lines of {log}:\n{tail(log)}")
