"""Lays out the tree of a topology as lines of text within a given width. Pure.

Each domain has a bar of its GPUs: `█` ours, `▒` of others, `░` free, `x` free and not usable. The characters
differ, so the drawing is complete without colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from grove.cli.views.line_width import shorten
from grove.views.topology.domain_view import DomainView, Gpus, NodeView, PartitionView, TopologyTree

OURS, OTHERS, FREE, BLOCKED = "█", "▒", "░", "x"
_STYLES = {OURS: "#009E73", OTHERS: "#E69F00", FREE: "dim", BLOCKED: "#D55E00"}
_LEGEND = f"{OURS} ours  {OTHERS} others  {FREE} free  {BLOCKED} cordoned or not ready"
_LONGEST_BAR, _SHORTEST_BAR = 16, 4
_FACTS = 14  # cells that counts need at least: a longer bar would hide them


class DomainLine(Struct, frozen=True):
    """A line: its name behind the guides of the tree, a bar, and facts."""

    name: str
    bar: str = ""
    facts: str = ""
    warns: bool = False

    @property
    def text(self) -> str:
        return "  ".join(filter(None, (self.name, self.bar, self.facts))).rstrip()


class _Row(Struct, frozen=True):
    name: str
    gpus: Gpus | None = None
    facts: tuple[str, ...] = ()
    children: tuple[_Row, ...] = ()
    warns: bool = False


def topology_lines(tree: TopologyTree, width: int | None = None, *, nodes: bool = False) -> list[DomainLine]:
    """The lines of a topology: its domains, and the slots that are left in each level. `nodes`: also the
    nodes. No width: unlimited."""
    found = title_lines(tree, width)
    rows = [("", _cluster(tree, nodes))]
    rows += _guided(rows[0][1], "")
    names = [f"{guides}{row.name}" for guides, row in rows]
    column = max((cell_len(name) for name, (_, row) in zip(names, rows, strict=True) if row.gpus), default=0)
    if width is not None:
        column = min(column, max(width - _FACTS - 2, 1))
    bar = _LONGEST_BAR if width is None else min(_LONGEST_BAR, width - column - _FACTS - 4)
    bar = bar if bar >= _SHORTEST_BAR else 0
    for name, (_, row) in zip(names, rows, strict=True):
        found.append(_line(name, row, column, bar, width))
    return [*found, *(DomainLine(_fitted(line, width)) for line in _slots(tree))]


def title_lines(tree: TopologyTree, width: int | None = None) -> list[DomainLine]:
    """The first lines: the levels, and a legend. They do not depend on nodes."""
    return [DomainLine(_fitted(text, width)) for text in (_title(tree), _LEGEND)]


def _title(tree: TopologyTree) -> str:
    if not tree.levels:
        return "no ClusterTopology: all nodes are one domain"
    return f"topology {tree.name}: {' > '.join(level.name for level in tree.levels)}"


def _cluster(tree: TopologyTree, nodes: bool) -> _Row:
    hidden = "" if nodes or not tree.levels else _level_of_nodes(tree.cluster)
    return _domain(tree.cluster, hidden, nodes)


def _level_of_nodes(domain: DomainView) -> str:
    """The level whose domains are single nodes, such as hosts; empty if there is none."""
    if not domain.domains:
        return domain.level if domain.level and domain.nodes == 1 else ""
    found = {_level_of_nodes(each) for each in domain.domains if each.name}
    return found.pop() if len(found) == 1 else ""


def _domain(domain: DomainView, hidden: str, nodes: bool) -> _Row:
    name = f"{domain.level} {domain.name or '(no label)'}" if domain.level else "cluster"
    if nodes and domain.level and domain.nodes == len(domain.members) == 1:
        return _node(domain.members[0], name)
    below = [_domain(each, hidden, nodes) for each in domain.domains if not hidden or each.level != hidden]
    narrowest = not below
    if narrowest:
        below += map(_partition, domain.partitions if len(domain.partitions) > 1 else ())
        below += map(_node, domain.members) if nodes else _problems(domain)
    return _Row(name, domain.gpus, tuple(_facts(domain, narrowest)), tuple(below))


def _facts(domain: DomainView, narrowest: bool) -> Iterator[str]:
    yield f"{domain.gpus.free}/{domain.gpus.total} free"
    yield f"{domain.nodes} node{'s' * (domain.nodes != 1)}"
    if not narrowest:
        tainted = {name for names in domain.tainted.values() for name in names}
        counts = {"not ready": domain.not_ready, "cordoned": domain.cordoned, "tainted": tainted}
        yield from (f"{len(names)} {what}" for what, names in counts.items() if names)
    if len(domain.partitions) > 1:
        yield f"{len(domain.partitions)} NVLink partitions"
    elif narrowest and domain.partitions:
        yield f"NVLink {domain.partitions[0].name}"


def _partition(found: PartitionView) -> _Row:
    facts = (f"{found.gpus.free}/{found.gpus.total} free", f"{found.nodes} node{'s' * (found.nodes != 1)}")
    return _Row(f"NVLink {found.name}", found.gpus, facts)


def _problems(domain: DomainView) -> Iterator[_Row]:
    """The nodes of a domain that pods cannot use, or only some."""
    for what, names in (("not ready", domain.not_ready), ("cordoned", domain.cordoned)):
        if names:
            yield _Row(f"{len(names)} {what}:", facts=(", ".join(names),), warns=True)
    for key, names in domain.tainted.items():
        yield _Row(f"{len(names)} tainted {key}:", facts=(", ".join(names),), warns=True)


def _node(node: NodeView, name: str = "") -> _Row:
    states = (("not ready", not node.ready), ("cordoned", node.cordoned))
    facts = [f"{node.gpus.free}/{node.gpus.total} free", *(what for what, holds in states if holds)]
    facts += (f"taint {key}" for key in node.taints)
    facts += [f"NVLink {node.partition}"] if node.partition else []
    return _Row(name or node.name, node.gpus, tuple(facts), warns=not node.ready or node.cordoned)


def _guided(row: _Row, guides: str) -> Iterator[tuple[str, _Row]]:
    for number, child in enumerate(row.children, start=1):
        last = number == len(row.children)
        yield guides + ("└─ " if last else "├─ "), child
        yield from _guided(child, guides + ("   " if last else "│  "))


def _line(name: str, row: _Row, column: int, bar: int, width: int | None) -> DomainLine:
    if row.gpus is None:
        return DomainLine(_fitted(f"{name} {', '.join(row.facts)}", width), warns=True)
    drawn = bar_of(row.gpus, bar)
    shown = set_cell_size(shorten(name, column), column)
    room = None if width is None else width - column - 2 - (bar + 2 if bar else 0)
    return DomainLine(shown, drawn, _fitted_facts(row.facts, room), row.warns)


def bar_of(gpus: Gpus, cells: int) -> str:
    """The GPUs as a bar of this many cells. What is there at all has at least one cell."""
    counts = [(OURS, gpus.ours), (OTHERS, gpus.others), (FREE, gpus.free), (BLOCKED, gpus.blocked)]
    total = sum(count for _, count in counts)
    if not cells or not total:
        return " " * cells
    sizes = {mark: max(1, round(cells * count / total)) for mark, count in counts if count}
    while (excess := sum(sizes.values()) - cells) and len(sizes) <= cells:
        largest = max(sizes, key=lambda mark: sizes[mark])
        sizes[largest] -= 1 if excess > 0 else -1
    return "".join(mark * sizes.get(mark, 0) for mark, _ in counts)[:cells]


def _slots(tree: TopologyTree) -> Iterator[str]:
    """How many jobs of each size fit into the domains of each level."""
    sizes: Sequence[int] = sorted({size for level in tree.levels for size in level.slots})
    if not sizes:
        return
    counts = [[str(level.slots.get(size, 0)) for size in sizes] for level in tree.levels]
    rows = [list(map(str, sizes)), *counts]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    names = ["free slots of GPUs", *(f"  in one {level.name}" for level in tree.levels)]
    name_width = max(map(cell_len, names))
    for name, row in zip(names, rows, strict=True):
        cells = "  ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))
        yield f"{set_cell_size(name, name_width)}  {cells}"


def _fitted_facts(facts: Sequence[str], width: int | None) -> str:
    """As many facts as there is room for; the first one is cut if it is too long alone."""
    for number in range(len(facts), 0, -1):
        text = ", ".join(facts[:number])
        if width is None or cell_len(text) <= width:
            return text
    return shorten(facts[0], max(width or 0, 0)) if facts else ""


def _fitted(text: str, width: int | None) -> str:
    return text if width is None else shorten(text, width)


def coloured_line(line: DomainLine) -> Text:
    """The line with colours."""
    text = Text(line.name, "red" if line.warns else "")
    if line.bar:
        text.append("  ")
        for mark in line.bar:
            text.append(mark, _STYLES.get(mark, ""))
    if line.facts:
        text.append(f"  {line.facts}", "red" if line.warns else "")
    return text
