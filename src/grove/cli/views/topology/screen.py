"""Shows topology trees: once, live on a terminal, or as one line for each change elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from msgspec.structs import replace
from rich.console import Console, Group
from rich.live import Live

from grove.cli.console import open_console, output_width
from grove.cli.options import Output
from grove.cli.printable import printable
from grove.cli.structured_output import is_structured, object_name, write_names, write_structured
from grove.cli.views.topology.domain_lines import DomainLine, coloured_line, title_lines, topology_lines
from grove.views.topology.domain_view import DomainView, Gpus, TopologyTree

Trees = Sequence[TopologyTree]


class Screen(Protocol):
    """The output that trees are shown on."""

    def begin(self, trees: Trees) -> None:
        """Show what is known without nodes, if the rest can be shown below it later."""

    def show(self, trees: Trees) -> None: ...


@contextmanager
def open_screen(output: Output, *, nodes: bool, live: bool) -> Iterator[Screen]:
    """A screen for this output format. `live`: more than one state is shown."""
    console = open_console()
    every = nodes or output == "wide"
    if is_structured(output):
        yield _StructuredScreen(output)
    elif output == "name":
        yield _NameScreen(nodes)
    elif live and console.is_terminal:
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as area:
            yield _LiveScreen(area, console, every)
    else:
        yield _LineScreen(console, every, output_width(console, output))


class _StructuredScreen:
    """One document for each state."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def begin(self, trees: Trees) -> None:
        pass

    def show(self, trees: Trees) -> None:
        write_structured({"topologies": trees}, self._output)
        sys.stdout.flush()


class _NameScreen:
    """The names of topologies, or of nodes, each once."""

    def __init__(self, nodes: bool) -> None:
        self._nodes = nodes
        self._known: set[str] = set()

    def begin(self, trees: Trees) -> None:
        pass

    def show(self, trees: Trees) -> None:
        if self._nodes:
            names = [object_name("Node", name) for name in _nodes(trees)]
        else:
            names = [object_name("ClusterTopology", tree.name) for tree in trees if tree.name]
        write_names(name for name in names if name not in self._known)
        sys.stdout.flush()
        self._known.update(names)


class _LiveScreen:
    def __init__(self, live: Live, console: Console, nodes: bool) -> None:
        self._live, self._console, self._nodes = live, console, nodes

    def begin(self, trees: Trees) -> None:
        pass

    def show(self, trees: Trees) -> None:
        lines = _lines(trees, self._console.width, self._nodes)
        self._live.update(Group(*map(coloured_line, lines)), refresh=True)


class _LineScreen:
    """The whole tree at first, then a line for each domain that has changed."""

    def __init__(self, console: Console, nodes: bool, width: int | None) -> None:
        self._console, self._nodes, self._width = console, nodes, width
        self._begun: list[DomainLine] = []
        self._before: Trees | None = None

    def begin(self, trees: Trees) -> None:
        self._begun = _printable(title_lines(trees[0], self._width)) if trees else []
        self._print(self._begun)
        sys.stdout.flush()

    def show(self, trees: Trees) -> None:
        if self._before is None:
            lines = _lines(trees, self._width, self._nodes)
            begun = lines[: len(self._begun)] == self._begun
            self._print(lines[len(self._begun) :] if begun else [DomainLine(""), *lines])
        else:
            for line in changes(self._before, trees):
                sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()
        self._before = trees

    def _print(self, lines: Sequence[DomainLine]) -> None:
        for line in lines:
            if self._console.is_terminal:
                self._console.print(coloured_line(line), no_wrap=True, overflow="crop", crop=False)
            else:
                sys.stdout.write(line.text + "\n")


def _lines(trees: Trees, width: int | None, nodes: bool) -> list[DomainLine]:
    found: list[DomainLine] = []
    for tree in trees:
        found += [*([DomainLine("")] if found else []), *topology_lines(tree, width, nodes=nodes)]
    return _printable(found)


def _printable(lines: Sequence[DomainLine]) -> list[DomainLine]:
    return [replace(line, name=printable(line.name), facts=printable(line.facts)) for line in lines]


def changes(before: Trees, after: Trees) -> Iterator[str]:
    """A line for each node whose GPUs or state differ, and for each that was added or removed."""
    known, now = _nodes(before), _nodes(after)
    for name in sorted(known.keys() - now.keys()):
        yield f"node {name}: removed"
    for name, (place, gpus, state) in now.items():
        if known.get(name) != (place, gpus, state):
            counts = f"{gpus.ours} ours, {gpus.others} others, {gpus.free}/{gpus.total} free"
            yield ", ".join(filter(None, (f"{place}node {name}: {counts}", state)))


def _nodes(trees: Trees) -> dict[str, tuple[str, Gpus, str]]:
    """By name, the domain, the GPUs and the state of each node, as the first topology sorts them."""
    found: dict[str, tuple[str, Gpus, str]] = {}

    def collect(domain: DomainView, place: str) -> None:
        here = f"{place}{domain.level} {domain.name or '(no label)'}, " if domain.level else place
        for each in domain.domains:
            collect(each, here)
        for node in domain.members:
            states = [("not ready", not node.ready), ("cordoned", node.cordoned)]
            state = [what for what, holds in states if holds] + [f"taint {key}" for key in node.taints]
            found[node.name] = (place if domain.nodes == 1 else here, node.gpus, ", ".join(state))

    if trees:
        collect(trees[0].cluster, "")
    return found
