"""Lays out sets as a table, one line each, within a given width. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from grove.cli.views.line_width import one_line, shorten
from grove.cli.views.set_view import SetView

HEADINGS = ("NAMESPACE", "NAME", "AVAILABLE", "GANGS", "PODS", "TOPOLOGY", "AGE")
_ERRORS = "ERRORS"
_GANGS, _TOPOLOGY, _AGE = map(HEADINGS.index, ("GANGS", "TOPOLOGY", "AGE"))
_ERROR_CELLS = 30  # of an error that are worth more than another column


def table(views: Sequence[SetView], *, namespaces: bool, width: int | None = None) -> list[str]:
    """One line per set, under headings; errors are last and cut at the width. A narrow table leaves out the
    age first, then the topology, then the gangs."""
    rows, errors = [HEADINGS, *map(_columns, views)], [_ERRORS, *map(_errors, views)]
    room = min(max(map(cell_len, errors)), _ERROR_CELLS)
    found: list[str] = []
    for hidden in ((), (_AGE,), (_AGE, _TOPOLOGY), (_AGE, _TOPOLOGY, _GANGS)):
        found = _aligned(rows, [i for i in range(not namespaces, len(HEADINGS)) if i not in hidden])
        if width is None or max(map(cell_len, found)) + 2 + room <= width:
            break
    lines = [f"{line}  {error}" for line, error in zip(found, errors, strict=True)]
    return lines if width is None else [shorten(line, width) for line in lines]


def _aligned(rows: Sequence[Sequence[str]], shown: Sequence[int]) -> list[str]:
    widths = [max(cell_len(row[i]) for row in rows) for i in shown]
    return [
        "  ".join(set_cell_size(row[i], width) for i, width in zip(shown, widths, strict=True))
        for row in rows
    ]


def _columns(view: SetView) -> tuple[str, ...]:
    running = sum(gang.phase == "Running" for gang in view.gangs)
    ready = sum(clique.ready for clique in view.cliques)
    return (
        view.namespace,
        view.name,
        f"{view.available}/{view.replicas}",
        f"{running}/{len(view.gangs)}",
        f"{ready}/{sum(clique.replicas for clique in view.cliques)}",
        "/".join(filter(None, (view.topology.name, view.topology.required))) if view.topology else "-",
        age_text(view.age_seconds),
    )


def _errors(view: SetView) -> str:
    """The first error of a set, its groups and its cliques, and how many more there are."""
    errors = list(dict.fromkeys(map(one_line, view.all_errors)))
    if not errors:
        return "-"
    return errors[0] if len(errors) == 1 else f"{errors[0]} (and {len(errors) - 1} more)"


def age_text(seconds: int | None) -> str:
    """An age in one unit: `42s`, `5m`, `3h`, `12d`."""
    if seconds is None:
        return "-"
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
