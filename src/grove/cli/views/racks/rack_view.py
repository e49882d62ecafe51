"""Draws the racks of a cluster: which gang has pods on which host. Pure.

Each gang has a letter, so the drawing is complete without colours. Colours are those of Okabe and Ito, which
colour-blind people can distinguish.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_letters
from textwrap import wrap

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from grove.api.formats.natural_order import natural_order
from grove.api.types.kubernetes_objects import Node
from grove.cli.views.line_width import shorten
from grove.local.cluster.cluster_shape import BLOCK, RACK, ZONE
from grove.views.set_view import GangView, SetView

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_INDENT = 2
_NARROWEST, _WIDEST = 2, 12  # cells of a host
_UNNAMED = "?"


class _Gang(Struct, frozen=True):
    """A gang with its letter, and its pods by host."""

    view: GangView
    letter: str
    style: str
    hosts: Mapping[str, int]


class _Host(Struct, frozen=True):
    """A host, and the letters of the gangs on it."""

    name: str
    pods: Text

    @property
    def width(self) -> int:
        return max(cell_len(self.name), self.pods.cell_len, _NARROWEST) + 2


def racks(nodes: Iterable[Node]) -> dict[tuple[str, str, str], list[Node]]:
    """The nodes of each rack, by zone, block and rack; sorted."""
    found: dict[tuple[str, str, str], list[Node]] = {}
    for node in nodes:
        labels = node.metadata.labels
        place = labels.get(ZONE, ""), labels.get(BLOCK, ""), labels.get(RACK, "")
        found.setdefault(place, []).append(node)
    return {
        place: sorted(members, key=lambda each: natural_order(each.metadata.name))
        for place, members in sorted(found.items(), key=lambda each: tuple(map(natural_order, each[0])))
    }


def drawing(nodes: Iterable[Node], views: Iterable[SetView], width: int) -> list[Text]:
    """The racks with the gangs of these sets, and the list of gangs, in lines of at most this width."""
    found, gangs = racks(nodes), list(_gangs(views))
    drawn = {
        name: [_Host(each.metadata.name.removeprefix(f"{name}-"), _pods(each, gangs)) for each in members]
        for (*_, name), members in found.items()
    }
    widest = max((host.width for hosts in drawn.values() for host in hosts), default=0)
    size = max(1, min(widest, _WIDEST, width - _INDENT - 2))
    lines = [line for name, hosts in drawn.items() for line in _rack(name, hosts, size, width)]
    rack_of = {node.metadata.name: place[-1] for place, members in found.items() for node in members}
    lines += (line for gang in gangs for line in _legend(gang, rack_of, width))
    return lines


def _gangs(views: Iterable[SetView]) -> Iterator[_Gang]:
    number = 0
    for view in views:
        hosts: dict[str, Counter[str]] = {}
        for clique in view.cliques:
            hosts.setdefault(clique.gang, Counter()).update(pod.node for pod in clique.pods if pod.node)
        for gang in view.gangs:
            letter = ascii_letters[26:][number] if number < 26 else ascii_letters[number % 26]
            yield _Gang(gang, letter, f"bold {_COLOURS[number % len(_COLOURS)]}", hosts.get(gang.name, {}))
            number += 1


def _rack(name: str, hosts: Sequence[_Host], size: int, width: int) -> Iterator[Text]:
    in_row = max(1, (width - _INDENT - 1) // (size + 1))
    used = sum(bool(host.pods) for host in hosts)
    counts = f"{len(hosts)} host{'s' * (len(hosts) != 1)}, {used} in use"
    yield Text(shorten(f"rack {name or _UNNAMED}  {counts}", width))
    for start in range(0, len(hosts), in_row):
        yield from _row(hosts[start : start + in_row], size)


def _row(hosts: Sequence[_Host], size: int) -> Iterator[Text]:
    """A row of hosts: their names in the upper edge, their pods below."""
    indent = " " * _INDENT
    yield Text(
        f"{indent}┌{'┬'.join(_edge(f'─{shorten(host.name, size - 1)}', size) for host in hosts)}┐", "dim"
    )
    line = Text(f"{indent}│")
    for host in hosts:
        cell = Text(" ") + host.pods
        cell.truncate(size, overflow="ellipsis", pad=True)
        line += cell + Text("│")
    yield line
    yield Text(f"{indent}└{'┴'.join(['─' * size] * len(hosts))}┘", "dim")


def _edge(text: str, size: int) -> str:
    return set_cell_size(text, size).rstrip().ljust(size, "─")


def _pods(node: Node, gangs: Sequence[_Gang]) -> Text:
    """The letters of the gangs on a host, with the number of pods if there are several."""
    found = Text()
    for gang in gangs:
        if pods := gang.hosts.get(node.metadata.name):
            found.append(f"{' ' if found else ''}{gang.letter}{pods if pods > 1 else ''}", gang.style)
    return found


def _legend(gang: _Gang, rack_of: Mapping[str, str], width: int) -> Iterator[Text]:
    """A gang with its racks; the reason of a gang that waits is in lines of its own, one for each domain."""
    places = sorted({rack_of.get(host, "") or _UNNAMED for host in gang.hosts}, key=natural_order)
    placed, pods = sum(gang.hosts.values()), f"{gang.view.pods} pod{'s' * (gang.view.pods != 1)}"
    text = f"{gang.view.name}  {pods}, no node yet"
    if placed:
        counts = pods if placed == gang.view.pods else f"{placed} of {pods}"
        text = f"{gang.view.name}  {counts} in rack{'s' * (len(places) != 1)} {', '.join(places)}"
    letter = Text(f"  {gang.letter}  ", gang.style)
    yield letter + Text(shorten(text, max(width - letter.cell_len, 1)), "default")
    for reason in gang.view.why.split("; ") if gang.view.why else ():
        wrapped = wrap(reason, max(width, 20), initial_indent=" " * 5, subsequent_indent=" " * 7)
        yield from map(Text, wrapped)
