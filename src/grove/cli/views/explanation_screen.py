"""Shows an explanation: its beginning as soon as that is known, the rest when everything is read."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from grove.cli.console import open_console, output_width
from grove.cli.options import Output
from grove.cli.views.explanation_lines import (
    ExplainedLine,
    coloured_explanation,
    explanation_lines,
    state_lines,
)
from grove.explanation.early import EarlyAnswer
from grove.explanation.model import Explanation


class ExplanationScreen:
    """Prints lines, coloured on a terminal, plain elsewhere."""

    def __init__(self, output: Output = "table") -> None:
        self._console, self._now = open_console(), time.time()
        self._width = output_width(self._console, output)
        self._shown: list[ExplainedLine] = []

    def show_early(self, early: EarlyAnswer) -> None:
        """Show the beginning."""
        found = early.explanation
        lines = explanation_lines(found, self._now, self._width)
        self._shown = list(lines if early.has_reasons else state_lines(found, self._width))
        self._print(self._shown)

    def show(self, found: Explanation) -> None:
        """Show the rest; everything once more, below, if what was shown is no longer true."""
        lines = list(explanation_lines(found, self._now, self._width))
        same = lines[: len(self._shown)] == self._shown
        self._print(lines[len(self._shown) :] if same else [ExplainedLine(""), *lines])

    def _print(self, lines: Iterable[ExplainedLine]) -> None:
        for line in lines:
            if self._console.is_terminal:
                self._console.print(coloured_explanation(line), no_wrap=True, overflow="crop", crop=False)
            else:
                sys.stdout.write(line.text + "\n")
        sys.stdout.flush()
