"""Tables that fit a width: columns are left out before the last one is cut. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from grove.cli.views.line_width import shorten

Rows = Sequence[Sequence[str]]


def aligned(
    headings: Sequence[str], rows: Rows, width: int, hidden: Sequence[int] = (), needed: int = 0
) -> list[str]:
    """The rows under their headings. Columns without any value are left out; in a narrow table those in
    `hidden` as well, one after another, until the last column has `needed` cells."""
    used = [i for i in range(len(headings)) if any(row[i] for row in rows)]
    lines: list[str] = []
    for count in range(len(hidden) + 1):
        shown = [i for i in used if i not in hidden[:count]]
        lines = [line_of(row, shown, widths_of((headings, *rows), shown)) for row in (headings, *rows)]
        fixed = sum(widths_of((headings, *rows), shown)[:-1]) + 2 * (len(shown) - 1)
        if max(map(cell_len, lines)) <= width or (needed and fixed + needed <= width):
            break
    return [shorten(line, width) for line in lines]


def widths_of(rows: Rows, shown: Sequence[int]) -> list[int]:
    """The cells that each column needs."""
    return [max(cell_len(row[i]) for row in rows) for i in shown]


def line_of(row: Sequence[str], shown: Sequence[int], widths: Sequence[int]) -> str:
    """One row; its last column is not filled up."""
    cells = (set_cell_size(row[i], size) for i, size in zip(shown[:-1], widths[:-1], strict=True))
    return "  ".join((*cells, *(row[i] for i in shown[-1:]))).rstrip()
