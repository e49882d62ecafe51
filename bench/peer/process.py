"""Runs a peer: its process group, its credentials, its log, and what happens when it exits."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bench.core.setup import credentials
from bench.peer.command import Command
from bench.peer.errors import PeerError
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.cluster.processes import tail

USER = "bench-peer"
GRACE = 10.0  # seconds between SIGTERM and SIGKILL


@asynccontextmanager
async def running(command: Command, cluster: LocalCluster) -> AsyncIterator[int]:
    """Start the peer and yield its process id; when it exits before it is stopped, the block is cancelled and
    PeerError raised."""
    log = cluster.state.log(USER)
    process = await _start(command, credentials(cluster, USER), log)
    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(_raise_on_exit(process, command, log))
            yield process.pid
            watch.cancel()
    except BaseExceptionGroup as several:
        raise _cause(several) from None
    finally:
        await _stop(process)


def last_lines(cluster: LocalCluster) -> str:
    """The end of the peer's log, to be put after an error message."""
    return _quoted(cluster.state.log(USER))


async def _start(command: Command, kubeconfig: Path, log: Path) -> Process:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with log.open("wb") as output:  # one log per start, so that its last lines are of this start
        try:
            return await asyncio.create_subprocess_exec(
                *command.arguments(kubeconfig),
                stdin=DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise PeerError(f"cannot run {command.words[0]} of PEER: {error.strerror}") from None


async def _raise_on_exit(process: Process, command: Command, log: Path) -> None:
    code = await process.wait()
    how = f"with code {code}" if code >= 0 else f"by signal {-code}"
    remedy = "it must run until it is stopped; correct PEER or what it reports"
    raise PeerError(f"the peer {command.name} exited {how}: {remedy}{_quoted(log)}")


def _cause(several: BaseExceptionGroup) -> BaseException:
    """The exit of the peer if it exited, as other errors follow from it; or else the error of the block."""
    errors = several.exceptions
    return next((error for error in errors if isinstance(error, PeerError)), errors[0])


async def _stop(process: Process) -> None:
    """Stop the whole process group; children that outlive the first process are killed."""
    _signal_group(process, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            await process.wait()
    _signal_group(process, signal.SIGKILL)
    await process.wait()


def _signal_group(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _quoted(log: Path) -> str:
    text = tail(log)
    return f"; the last lines of its log:\n{text}" if text else "; it has logged nothing"
