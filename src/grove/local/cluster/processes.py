"""Start, recognise and stop the processes of a cluster.

They outlive the command that starts them, so each leaves a pid file. A pid alone is no identity: the
file also holds when the process started, and a process that was born at another moment is a stranger.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grove.local.cluster.pki import write_private
from grove.local.errors import LocalError

_POLL = 0.02  # the parent of an adopted process gets no event when it ends


@dataclass(frozen=True, slots=True)
class Process:
    """A process that we started, now or in an earlier command."""

    pid: int
    started_at: str

    @property
    def alive(self) -> bool:
        return self.started_at != "" and start_time(self.pid) == self.started_at


def start_time(pid: int) -> str:
    """When a process started, in whatever words this system has; empty if there is none or it is a zombie."""
    try:
        # After the command's name, which may hold anything: state, ppid, ... the 20th is the start time.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return "" if Path("/proc/self").exists() else _start_time_by_ps(pid)
    except ProcessLookupError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _start_time_by_ps(pid: int) -> str:
    answer = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip()


def spawn(
    command: list[str], log: Path, pid_file: Path, environment: Mapping[str, str] | None = None
) -> Process:
    """Start a part in a session of its own, so that Ctrl-C in the terminal does not reach it."""
    with log.open("ab") as output:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        except OSError as error:
            raise LocalError(f"cannot run {command[0]}: {error.strerror}") from error
    child.returncode = 0  # it is meant to outlive us; keeps Python from complaining that it does
    process = Process(child.pid, start_time(child.pid))
    write_private(pid_file, f"{process.pid} {process.started_at}\n".encode())
    return process


def find_process(pid_file: Path) -> Process | None:
    """The process that a pid file speaks of, if it still runs."""
    try:
        pid, _, born = pid_file.read_text().strip().partition(" ")
    except FileNotFoundError:
        return None
    if not pid.isdecimal():
        return None
    process = Process(int(pid), born)
    _reap(process.pid)
    return process if process.alive else None


def stop(process: Process, timeout: float) -> None:
    """Ask a process to end; after `timeout` seconds it is made to."""
    for sign, seconds in ((signal.SIGTERM, timeout), (signal.SIGKILL, 10.0)):
        if not process.alive:
            return
        os.kill(process.pid, sign)
        if _wait_for_end(process, seconds):
            return
    raise LocalError(f"process {process.pid} does not end, not even when killed")


def _wait_for_end(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.alive:
        if time.monotonic() > deadline:
            return False
        _reap(process.pid)
        time.sleep(_POLL)
    return True


def _reap(pid: int) -> None:
    """A child that ended stays a zombie until asked for; of others there is nothing to ask."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log, for an error message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 16_384))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
