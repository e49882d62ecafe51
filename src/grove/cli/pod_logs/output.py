"""Prints lines of logs with prefixes: coloured and safe on a terminal, unchanged elsewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from msgspec import Struct
from rich.console import Console

from grove.cli.pod_logs.lines import LogLine
from grove.cli.pod_logs.sources import LogSource
from grove.cli.printable import printable

_COLOURS = (36, 33, 35, 32, 34, 96, 93, 95, 92, 94)
_SGR = re.compile("(\x1b\\[[0-9;:]*m)")
_RESET = "\x1b[0m"
_PREFIX_SHARE = 3  # a prefix that takes more than this part of a line is shortened


class LineFormat(Struct, frozen=True):
    """How lines are printed."""

    prefix: bool = True
    timestamps: bool = False


class LogOutput:
    """Prints lines. `name`: the object whose logs these are, which the names of pods repeat."""

    def __init__(self, format_: LineFormat, console: Console, name: str) -> None:
        self._format, self._console, self._name = format_, console, name
        self._terminal = console.is_terminal
        self._coloured = self._terminal and console.color_system is not None
        self._pods: dict[str, int] = {}
        self._prefixes: dict[LogSource, str] = {}

    def write(self, source: LogSource, lines: Iterable[LogLine]) -> None:
        """Print lines of one log."""
        prefix = self._prefix(source)
        if self._terminal:
            sys.stdout.write("".join(f"{prefix}{self._shown(line)}\n" for line in lines))
            return
        start = prefix.encode()
        sys.stdout.flush()
        sys.stdout.buffer.write(b"".join(start + self._raw(line) + b"\n" for line in lines))

    def flush(self) -> None:
        """Show what was printed."""
        sys.stdout.flush()
        sys.stdout.buffer.flush()

    def _raw(self, line: LogLine) -> bytes:
        if self._format.timestamps and line.stamp:
            return line.stamp + b" " + line.text
        return line.text

    def _shown(self, line: LogLine) -> str:
        """A line for a terminal: colours are kept, other control characters replaced."""
        text = self._raw(line).decode("utf-8", "replace")
        if text.isprintable():
            return text
        parts = _SGR.split(text)
        if not self._coloured:
            return "".join(map(printable, parts[::2]))
        shown = "".join(part if i % 2 else printable(part) for i, part in enumerate(parts))
        return shown + _RESET if len(parts) > 1 else shown

    def _prefix(self, source: LogSource) -> str:
        if not self._format.prefix:
            return ""
        if source not in self._prefixes:
            self._prefixes[source] = self._new_prefix(source)
        return self._prefixes[source]

    def _new_prefix(self, source: LogSource) -> str:
        text = f"[{printable(str(source))}]"
        if not self._terminal:
            return f"{text} "
        if len(text) * _PREFIX_SHARE > self._console.width and source.pod.startswith(f"{self._name}-"):
            text = f"[…{printable(str(source)).removeprefix(self._name)}]"
        if not self._coloured:
            return f"{text} "
        colour = _COLOURS[self._pods.setdefault(source.pod, len(self._pods)) % len(_COLOURS)]
        return f"\x1b[{colour}m{text}{_RESET} "
