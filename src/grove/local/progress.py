"""Progress of long operations: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

_PLAIN_EVERY = 15.0  # seconds between two lines where there is no terminal


class Task(Protocol):
    """One long operation."""

    def step(self, what: str, done: int, total: int | None = None) -> None:
        """Report the current step, and how many are done."""


class ProgressReporter:
    """Prints progress to one console; nothing if `quiet`."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet

    def say(self, line: str) -> None:
        if not self._quiet:
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def task(self, title: str) -> Iterator[Task]:
        if self._console.is_terminal and not self._quiet:
            with _bar(self._console) as progress:
                yield _LiveTask(progress, title)
        else:
            yield _PlainTask(self, title)


def _bar(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[what]}", table_column=None),
        console=console,
        transient=True,
    )


class _LiveTask:
    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._id = progress.add_task(title, total=None, what="")

    def step(self, what: str, done: int, total: int | None = None) -> None:
        self._progress.update(self._id, completed=done, total=total, what=what)


class _PlainTask:
    def __init__(self, reporter: ProgressReporter, title: str) -> None:
        self._reporter, self._title = reporter, title
        self._started = time.monotonic()
        self._reported = -_PLAIN_EVERY

    def step(self, what: str, done: int, total: int | None = None) -> None:
        elapsed = time.monotonic() - self._started
        if elapsed - self._reported < _PLAIN_EVERY:
            return
        self._reported = elapsed
        of = f"{done}/{total}" if total else str(done)
        self._reporter.say(f"{self._title}: {of} after {elapsed:.0f} s, {what}")
