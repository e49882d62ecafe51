"""Commands on a terminal of a given width, as a person would see them."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

GROVE = str(Path(sys.executable).with_name("grove"))


def on_terminal(*arguments: str, columns: int, **environment: str) -> tuple[int, str]:
    """Run `grove` on a terminal; its exit code and all that was shown, colours included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    variables |= {"TERM": "xterm-256color", **environment}
    with subprocess.Popen(
        [GROVE, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=variables
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:  # how Linux says that nobody holds the other end any more
            pass
        finally:
            os.close(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n")
