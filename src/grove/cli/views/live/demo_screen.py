"""Shows one set while it changes, for `grove demo`: a live tree on a terminal, else one line per change."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from grove.cli.printable import printable
from grove.cli.views.live.set_watcher import Screen
from grove.cli.views.text_layout import coloured, lines, tree
from grove.views.set_view import SetView


@contextmanager
def screen(console: Console, known: SetView | None = None) -> Iterator[Screen]:
    """A live tree on a terminal, elsewhere one line for each change since `known`."""
    if not console.is_terminal:
        yield LineScreen(known)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _LiveScreen(live, console)


class _LiveScreen:
    def __init__(self, live: Live, console: Console) -> None:
        self._live, self._console = live, console

    def show(self, view: SetView) -> None:
        self._live.update(live_frame(view, self._console.width, self._console.height), refresh=True)


def live_frame(view: SetView, width: int, height: int) -> Group:
    """The set with its pods if they fit on the terminal, else down to its cliques."""
    rows = list(lines(tree(view), width))
    if len(rows) > height - 2:
        rows = list(lines(tree(view, pods=False), width))
    return Group(*(coloured(row) for row in rows), Text(summary(view), style="dim", no_wrap=True))


def summary(view: SetView) -> str:
    """The number of pods in each state."""
    states: dict[str, int] = {}
    for pod in view.pods:
        states[pod.state] = states.get(pod.state, 0) + 1
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"{len(view.pods)} pods: {counted}" if counted else "no pods yet"


class LineScreen:
    """Prints one line per change."""

    def __init__(self, known: SetView | None = None) -> None:
        self._before = known

    def show(self, view: SetView) -> None:
        for line in changes(self._before, view):
            sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()
        self._before = view


def changes(before: SetView | None, after: SetView) -> Iterator[str]:
    """One line per gang with a new phase, per deleted gang, and per clique whose counts changed."""
    phases = {gang.name: gang.phase for gang in before.gangs} if before else {}
    counts = {one.name: (one.ready, one.replicas) for one in before.cliques} if before else {}
    for clique in after.cliques:
        if counts.get(clique.name) != (clique.ready, clique.replicas):
            yield f"clique {clique.name}: {clique.ready}/{clique.replicas} ready"
    for gang in after.gangs:
        if phases.get(gang.name) != gang.phase:
            yield f"gang {gang.name}: {gang.phase}"
    for deleted in sorted(phases.keys() - {gang.name for gang in after.gangs}):
        yield f"gang {deleted}: deleted"
