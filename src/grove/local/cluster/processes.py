"""Starts, finds and stops the processes of a cluster.

They outlive the command that starts them, so each has a pid file. A pid may be reused: the file also holds
the start time, and a process with another start time is not ours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grove.local.errors import LocalError
from grove.local.private_files import write_private

_POLL = 0.02  # seconds; there is no notification when a process of an earlier command exits


@dataclass(frozen=True, slots=True)
class Process:
    """A process that we started, now or in an earlier command."""

    pid: int
    started_at: str

    @property
    def alive(self) -> bool:
        return self.started_at != "" and start_time(self.pid) == self.started_at


def start_time(pid: int) -> str:
    """The start time of a process as the system formats it; empty if it does not exist or is a zombie."""
    try:
        # After the command's name, which may contain spaces: state, ppid, ...; the 20th is the start time.
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
    """Start a component in its own session, so that Ctrl-C in the terminal does not reach it."""
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
    child.returncode = 0  # it outlives this process; avoids Python's warning about that
    process = Process(child.pid, start_time(child.pid))
    write_private(pid_file, f"{process.pid} {process.started_at}\n".encode())
    return process


def find_process(pid_file: Path) -> Process | None:
    """The process of a pid file, if it still runs."""
    try:
        pid, _, started_at = pid_file.read_text().strip().partition(" ")
    except FileNotFoundError:
        return None
    if not pid.isdecimal():
        return None
    process = Process(int(pid), started_at)
    _reap(process.pid)
    return process if process.alive else None


def stop(process: Process, timeout: float) -> None:
    """Stop a process with SIGTERM, and with SIGKILL after `timeout` seconds."""
    for sign, seconds in ((signal.SIGTERM, timeout), (signal.SIGKILL, 10.0)):
        if not process.alive:
            return
        os.kill(process.pid, sign)
        if _wait_for_end(process, seconds):
            return
    raise LocalError(f"process {process.pid} does not exit, even after SIGKILL")


def _wait_for_end(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.alive:
        if time.monotonic() > deadline:
            return False
        _reap(process.pid)
        time.sleep(_POLL)
    return True


def _reap(pid: int) -> None:
    """Reap an exited child, which stays a zombie otherwise; does nothing for other processes."""
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
