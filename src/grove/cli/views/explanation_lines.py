"""Lays out explanations as lines of text within a given width. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from grove.cli.printable import printable
from grove.cli.views.line_width import shorten
from grove.explanation.model import (
    ContainerView,
    DomainRow,
    EventView,
    Explanation,
    GangExplanation,
    Holder,
    ReasonView,
)
from grove.plan.timestamps import timestamp
from grove.views.age import age_text

_UNLIMITED = 10_000
_HEADINGS = ("DOMAIN", "NODES", "FREE", "SHORT", "PODS FIT", "NOT USABLE")


class ExplainedLine(Struct, frozen=True):
    """A line and its style."""

    text: str
    style: str = ""


def explanation_lines(found: Explanation, now: float, width: int | None = None) -> Iterator[ExplainedLine]:
    """Everything about one object: reasons, domains, what helps, containers and events."""
    size = max(width or _UNLIMITED, 1)
    return fitted(_lines(found, now, size), size)


def state_lines(found: Explanation, width: int | None = None) -> Iterator[ExplainedLine]:
    """The first lines: which object it is, and its state."""
    size = max(width or _UNLIMITED, 1)
    return fitted(_state(found, size), size)


def fitted(lines: Iterable[ExplainedLine], width: int) -> Iterator[ExplainedLine]:
    """The lines without control characters, cut to a width."""
    return (ExplainedLine(shorten(printable(line.text), width), line.style) for line in lines)


def _state(found: Explanation, width: int) -> Iterator[ExplainedLine]:
    yield from wrapped(f"{found.about}: {found.state}", width, "", "bold")


def _lines(found: Explanation, now: float, width: int) -> Iterator[ExplainedLine]:
    yield from _state(found, width)
    if not found.waits:
        yield ExplainedLine("nothing waits", "green")
        return
    if not found.reasons:
        yield ExplainedLine("no reason is known yet", "yellow")
    for number, reason in enumerate(found.reasons, start=1):
        yield from reason_lines(number, reason, now, width)
    for gang in found.gangs:
        yield from _gang(gang, width)
    yield from more_line(
        found.more.get("gangs", 0), "gang that waits for nodes", "gangs that wait for nodes", ""
    )
    yield from section_lines("containers", map(_container, found.containers), width)
    yield from more_line(found.more.get("containers", 0), "container", "containers")
    yield from section_lines("events, the oldest first", map(_event, found.events), width)
    yield from more_line(found.more.get("events", 0), "older event", "older events")


def reason_lines(number: int, reason: ReasonView, now: float, width: int) -> Iterator[ExplainedLine]:
    """A reason and its remedy."""
    about = f"{reason.about.kind} {reason.about.name}" if reason.about is not None else ""
    age = age_text(max(0, int(now - timestamp(reason.since)))) if reason.since else ""
    title = ", ".join(filter(None, (f"{number}. {reason.code}", about, f"since {age}" if age else "")))
    yield from wrapped(title, width, "", "bold red", "   ")
    yield from wrapped(reason.message, width, "   ")
    yield from wrapped(f"-> {reason.remedy}", width, "   ", "cyan", "      ")


def _gang(gang: GangExplanation, width: int) -> Iterator[ExplainedLine]:
    level = f", in one {gang.level}" if gang.level else ""
    resource = next((f", needs {row.need} {row.resource}" for row in gang.domains if row.resource), "")
    pods = f"{gang.pods} pod{'s' * (gang.pods != 1)}"
    yield from wrapped(f"gang {gang.gang}: {pods}{level}{resource}", width, "", "bold")
    if gang.domains:
        yield from (ExplainedLine(f"  {line}") for line in _table(gang.domains, width - 2))
    yield from more_line(gang.more_domains, "domain", "domains")
    yield from section_lines("  what holds the rest", map(_holder, gang.holders), width, "    ")
    yield from more_line(gang.more_holders, "pod", "pods", "    ")
    if gang.remedies:
        yield ExplainedLine("  what would make room, each alone", "bold")
    for each in gang.remedies:
        yield from wrapped(f"- {each.text}", width, "    ", "cyan", "      ")


def _table(rows: Sequence[DomainRow], width: int) -> list[str]:
    """The domains; a narrow table leaves out the pods that fit, then the nodes."""
    cells = [_HEADINGS, *map(_cells, rows)]
    found: list[str] = []
    for hidden in ((), (4,), (4, 1)):
        shown = [i for i in range(len(_HEADINGS)) if i not in hidden and any(row[i] for row in cells[1:])]
        sizes = [max(cell_len(row[i]) for row in cells) for i in shown]
        found = [
            "  ".join(set_cell_size(row[i], size) for i, size in zip(shown, sizes, strict=True)).rstrip()
            for row in cells
        ]
        if max(map(cell_len, found)) <= width:
            break
    return found


def _cells(row: DomainRow) -> tuple[str, ...]:
    unusable = [f"{count} {reason}" for reason, count in row.unusable.items()]
    unusable += (f"{count} held for {gang}" for gang, count in row.reserved.items())
    return (
        row.domain,
        str(row.nodes),
        f"{row.free} of {row.total}" if row.resource else "",
        str(row.short or ""),
        f"{row.room} of {row.pods}",
        ", ".join(unusable),
    )


def _holder(found: Holder) -> str:
    gang = f", gang {found.gang}" if found.gang else ""
    priority = f", priority {found.priority}" if found.priority else ""
    return f"{found.pod.namespace}/{found.pod.name}: {found.amount} on {found.node}{gang}{priority}"


def _container(found: ContainerView) -> str:
    restarts = f", {found.restarts} restart{'s' * (found.restarts != 1)}" if found.restarts else ""
    message = f": {found.message}" if found.message else ""
    return f"{found.pod} {found.container}: {found.state}{restarts}{message}"


def _event(found: EventView) -> str:
    times = f" x{found.count}" if found.count > 1 else ""
    about = f"{found.about.kind} {found.about.name}"
    return f"{age_text(found.age_seconds)}{times} {found.reason} {about}: {found.message}"


def section_lines(
    title: str, lines: Iterable[str], width: int, indent: str = "  "
) -> Iterator[ExplainedLine]:
    """Lines under a title; nothing without lines."""
    found = list(lines)
    if found:
        yield ExplainedLine(title, "bold")
    for line in found:
        yield from wrapped(line, width, indent, "", indent + "  ")


def more_line(count: int, one: str, several: str, indent: str = "  ") -> Iterator[ExplainedLine]:
    """That so many were left out."""
    if count > 0:
        yield ExplainedLine(f"{indent}and {count} more {one if count == 1 else several}")


def wrapped(
    text: str, width: int, indent: str, style: str = "", further: str | None = None
) -> Iterator[ExplainedLine]:
    """A text in lines of this width; `further` is the indent of all but the first."""
    size = max(width, len(indent) + 10)
    below = indent if further is None else further
    for line in wrap(text, size, initial_indent=indent, subsequent_indent=below, break_on_hyphens=False):
        yield ExplainedLine(line, style)


def summary_lines(found: Sequence[Explanation], width: int | None = None) -> list[str]:
    """One line for each object that waits, with its first reason."""
    rows = [("NAMESPACE", "NAME", "REASON", "MESSAGE")]
    for each in found:
        first = each.reasons[0] if each.reasons else None
        code = str(first.code) if first is not None else "-"
        rows.append(
            (each.about.namespace, each.about.name, code, first.message if first is not None else each.state)
        )
    sizes = [max(cell_len(row[i]) for row in rows) for i in range(3)]
    lines = []
    for row in rows:
        cells = (set_cell_size(cell, size) for cell, size in zip(row, sizes, strict=False))
        lines.append(printable("  ".join((*cells, row[3])).rstrip()))
    return lines if width is None else [shorten(line, width) for line in lines]


def coloured_explanation(line: ExplainedLine) -> Text:
    return Text(line.text, line.style)
