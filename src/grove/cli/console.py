"""The consoles of all commands."""

from __future__ import annotations

import os

from rich.console import Console

from grove.cli.options import Output


def open_console(*, stderr: bool = False) -> Console:
    """A console with colours on a terminal, unless the variable NO_COLOR is set (https://no-color.org): Rich
    then leaves out colours by itself, but not bold and dim text."""
    return Console(stderr=stderr, color_system=None if os.environ.get("NO_COLOR") else "auto")


def output_width(console: Console, output: Output = "table") -> int | None:
    """The width of the terminal; None (unlimited) for `wide`, and if the output is not a terminal."""
    return console.width if console.is_terminal and output != "wide" else None
