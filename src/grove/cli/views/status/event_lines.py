"""Lays out events as lines of text within a given width. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grove import timing
from grove.cli.views.explanation_lines import ExplainedLine, fitted, wrapped
from grove.cli.views.status.columns import line_of, widths_of
from grove.explanation.model import EventView
from grove.views.age import age_text

_UNLIMITED = 10_000
_HEADINGS = ("LAST", "TYPE", "REASON", "OBJECT", "MESSAGE")
_SHOWN = range(len(_HEADINGS))
_WARNING = "Warning"


class EventLines:
    """A table of events that grows: events that come later are below, in the same columns."""

    def __init__(self, width: int | None = None) -> None:
        self._width = max(width or _UNLIMITED, 1)
        self._widths: list[int] = []

    def lines(self, events: Sequence[EventView]) -> list[ExplainedLine]:
        """The lines of the next events."""
        rows = [_cells(each) for each in events]
        found: list[ExplainedLine] = []
        if not self._widths:
            self._widths = widths_of((_HEADINGS, *rows), _SHOWN)
            if self._fits:
                found.append(ExplainedLine(line_of(_HEADINGS, _SHOWN, self._widths), "bold"))
        for each, row in zip(events, rows, strict=True):
            style = "" if each.type == "Normal" else "yellow"
            if self._fits:
                found.append(ExplainedLine(line_of(row, _SHOWN, self._widths), style))
            else:
                found += _narrow(row, self._width, style)
        return list(fitted(found, self._width))

    @property
    def _fits(self) -> bool:
        """Whether messages have room beside the other columns."""
        fixed = sum(self._widths[:-1]) + 2 * (len(self._widths) - 1)
        return fixed + min(timing.EVENT_MESSAGE_WIDTH, self._widths[-1]) <= self._width


def _cells(event: EventView) -> tuple[str, ...]:
    times = f" (x{event.count})" if event.count > 1 else ""
    about = f"{event.about.kind}/{event.about.name}"
    return age_text(event.age_seconds), event.type, event.reason, about, f"{event.message}{times}"


def _narrow(row: Sequence[str], width: int, style: str) -> Iterator[ExplainedLine]:
    """An event with its message on lines of its own."""
    age, kind, reason, about, message = row
    marked = f"{kind} " if kind == _WARNING else ""
    yield from wrapped(f"{age} {marked}{reason} {about}", width, "", style, "  ")
    yield from wrapped(message, width, "  ")
