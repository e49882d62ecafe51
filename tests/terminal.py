"""Runs commands on a pseudo-terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

GROVE = str(Path(sys.executable).with_name("grove"))


def on_terminal(*arguments: str, columns: int = 80, **environment: str) -> tuple[int, str]:
    """Run `grove` on a terminal; returns its exit code and output, including colours."""
    return run_on_terminal([GROVE, *arguments], columns, **environment)


def run_on_terminal(command: Sequence[str], columns: int = 80, **environment: str) -> tuple[int, str]:
    """Run a program on a terminal; returns its exit code and output, including colours."""
    own_end, child_end = pty.openpty()
    fcntl.ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    variables |= {"TERM": "xterm-256color", **environment}
    with subprocess.Popen(
        command, stdin=child_end, stdout=child_end, stderr=child_end, env=variables
    ) as process:
        os.close(child_end)
        shown = b""
        try:
            while chunk := os.read(own_end, 65536):
                shown += chunk
        except OSError:  # on Linux: the other end is closed
            pass
        finally:
            os.close(own_end)
    return process.returncode, shown.decode().replace("\r\n", "\n")
