"""Shows sets while they change, for `--watch`: redrawn on a terminal, elsewhere what has changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from msgspec.structs import replace
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from grove.cli.console import open_console
from grove.cli.options import Output
from grove.cli.printable import printable
from grove.cli.structured_output import is_structured, write_names, write_structured
from grove.views.set_view import SetView

Views = Sequence[SetView]
Rendered = Callable[[Views, int | None], Iterable[Text]]
"""Lays out sets as lines within a width."""
Changes = Callable[[Views, Views], Iterable[str]]
"""The lines that say what differs between two states."""
Named = Callable[[SetView], Iterable[str]]


class SetsScreen(Protocol):
    """The output that sets are shown on."""

    def show(self, views: Views) -> None: ...


@contextmanager
def open_sets_screen(
    output: Output, rendered: Rendered, changes: Changes, named: Named
) -> Iterator[SetsScreen]:
    """A screen for this output format."""
    console = open_console()
    if is_structured(output):
        yield _StructuredScreen(output)
    elif output == "name":
        yield _NameScreen(named)
    elif console.is_terminal:
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as area:
            yield _LiveScreen(area, console, rendered)
    else:
        yield _LineScreen(rendered, changes)


def same(before: SetView | None, after: SetView | None) -> bool:
    """Whether nothing but the age differs."""
    return _ageless(before) == _ageless(after)


def _ageless(view: SetView | None) -> SetView | None:
    return view and replace(view, age_seconds=None)


class _StructuredScreen:
    """One document for each state."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def show(self, views: Views) -> None:
        write_structured({"items": views}, self._output)
        sys.stdout.flush()


class _NameScreen:
    """Each name once."""

    def __init__(self, named: Named) -> None:
        self._named, self._known = named, dict[str, None]()

    def show(self, views: Views) -> None:
        found = dict.fromkeys(name for view in views for name in self._named(view))
        write_names(name for name in found if name not in self._known)
        sys.stdout.flush()
        self._known |= found


class _LiveScreen:
    def __init__(self, live: Live, console: Console, rendered: Rendered) -> None:
        self._live, self._console, self._rendered = live, console, rendered

    def show(self, views: Views) -> None:
        lines = list(self._rendered(views, self._console.width))
        for line in lines:
            line.no_wrap, line.overflow = True, "crop"
        self._live.update(Group(*lines), refresh=True)


class _LineScreen:
    """All sets at first, then what has changed."""

    def __init__(self, rendered: Rendered, changes: Changes) -> None:
        self._rendered, self._changes = rendered, changes
        self._before: Views | None = None

    def show(self, views: Views) -> None:
        if self._before is None:
            lines: Iterable[str] = (line.plain for line in self._rendered(views, None))
        else:
            lines = map(printable, self._changes(self._before, views))
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        self._before = views
