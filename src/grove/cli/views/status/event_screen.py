"""Shows events, each once, in the order in which they happened."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from grove.cli.console import open_console, output_width
from grove.cli.options import Output
from grove.cli.structured_output import is_structured, object_name, write_names, write_structured
from grove.cli.views.explanation_lines import coloured_explanation
from grove.cli.views.status.event_lines import EventLines
from grove.explanation.model import EventView


class EventScreen:
    """Prints events: those that there are in one document or table, later ones one by one."""

    def __init__(self, output: Output) -> None:
        self._output, self._console = output, open_console()
        self._lines = EventLines(output_width(self._console, output))
        self._shown: set[tuple[str, str, int]] = set()

    def show(self, events: Sequence[EventView], *, live: bool = False) -> None:
        """Show the events that are new, or have happened again. `live`: more may follow."""
        new = [each for each in events if (each.name, each.time, each.count) not in self._shown]
        self._shown |= {(each.name, each.time, each.count) for each in new}
        if is_structured(self._output):
            for document in new if live else ({"items": new},):
                write_structured(document, self._output)
        elif self._output == "name":
            write_names(object_name("Event", each.name) for each in new)
        elif new:
            self._print(new)
        sys.stdout.flush()

    def _print(self, events: Sequence[EventView]) -> None:
        for line in self._lines.lines(events):
            if self._console.is_terminal:
                self._console.print(coloured_explanation(line), no_wrap=True, overflow="crop", crop=False)
            else:
                sys.stdout.write(line.text + "\n")
