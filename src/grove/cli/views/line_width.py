"""Text on one line of a terminal. Pure."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from grove.cli.printable import printable


def one_line(text: str) -> str:
    """The text without line breaks and control characters."""
    return printable(" ".join(text.split()))


def shorten(text: str, width: int) -> str:
    """The text cut to a width, with an ellipsis where text is missing."""
    if cell_len(text) <= width:
        return text
    return f"{set_cell_size(text, width - 1)}…" if width > 0 else ""
