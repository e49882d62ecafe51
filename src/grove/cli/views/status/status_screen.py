"""Shows the status of an object: once, live on a terminal, or as changed lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from msgspec.structs import replace
from rich.console import Console, Group
from rich.live import Live

from grove.cli.console import open_console, output_width
from grove.cli.options import Output
from grove.cli.structured_output import is_text, object_name, write_names, write_structured
from grove.cli.views.explanation_lines import ExplainedLine, coloured_explanation
from grove.cli.views.status.status_lines import status_lines
from grove.views.status.model import StatusView


class StatusScreen(Protocol):
    """The output that the status is shown on."""

    def show(self, found: StatusView) -> None: ...


@contextmanager
def open_screen(output: Output, lease: str, *, live: bool) -> Iterator[StatusScreen]:
    """A screen for this output format. `live`: more than one state is shown."""
    console = open_console()
    width = output_width(console, output)
    if not is_text(output):
        yield _DocumentScreen(output)
    elif live and console.is_terminal:
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as area:
            yield _LiveScreen(area, width, lease)
    else:
        yield _LineScreen(console, width, lease)


class _DocumentScreen:
    """One document, or the name of the object, for each state."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._before: StatusView | None = None

    def show(self, found: StatusView) -> None:
        steady = _steady(found)
        if steady != self._before:
            self._before = steady
            if self._output == "name":
                write_names([object_name(found.about.kind, found.about.name)])
            else:
                write_structured(found, self._output)
            sys.stdout.flush()


def _steady(found: StatusView) -> StatusView:
    """The status without the renewals of the Lease, which are no change."""
    if found.operator is None:
        return found
    return replace(found, operator=replace(found.operator, renewed=None, renewed_seconds_ago=None))


class _LiveScreen:
    def __init__(self, live: Live, width: int | None, lease: str) -> None:
        self._live, self._width, self._lease = live, width, lease

    def show(self, found: StatusView) -> None:
        lines = status_lines(found, self._lease, time.time(), self._width)
        self._live.update(Group(*map(coloured_explanation, lines)), refresh=True)


class _LineScreen:
    """The whole page at first, then the lines that have changed, below the verdict."""

    def __init__(self, console: Console, width: int | None, lease: str) -> None:
        self._console, self._width, self._lease = console, width, lease
        self._before: StatusView | None = None
        self._shown: set[str] = set()

    def show(self, found: StatusView) -> None:
        if self._before is not None and _steady(found) == self._before:
            return  # only ages have changed
        lines = status_lines(found, self._lease, time.time(), self._width)
        changed = [each for each in lines[1:] if each.text not in self._shown]
        self._print(lines if self._before is None else [lines[0], *changed])
        self._before, self._shown = _steady(found), {each.text for each in lines}

    def _print(self, lines: Iterable[ExplainedLine]) -> None:
        for line in lines:
            if self._console.is_terminal:
                self._console.print(coloured_explanation(line), no_wrap=True, overflow="crop", crop=False)
            else:
                sys.stdout.write(line.text + "\n")
        sys.stdout.flush()
