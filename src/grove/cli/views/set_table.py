"""Lays out sets as a table, one line each, within a given width. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from grove.cli.views.line_width import one_line, shorten
from grove.views.age import age_text
from grove.views.set_view import SetView

HEADINGS = (
    "NAMESPACE", "NAME", "AVAILABLE", "GANGS", "PODS", "GROUPS", "NODES", "DOMAINS", "TOPOLOGY", "AGE",
)  # fmt: skip
_ERRORS = "ERRORS"
_NAMESPACE, _GANGS, _GROUPS, _NODES, _DOMAINS, _TOPOLOGY, _AGE = map(
    HEADINGS.index, ("NAMESPACE", "GANGS", "GROUPS", "NODES", "DOMAINS", "TOPOLOGY", "AGE")
)
_ERROR_CELLS = 30  # of an error that are worth more than another column


def table(
    views: Sequence[SetView], *, namespaces: bool, width: int | None = None, wide: bool = False
) -> list[str]:
    """One line per set, under headings; errors are last and cut at the width. A narrow table leaves out the
    age first, then the topology, then the gangs; fabric domains have a column if any set has some. A wide
    table has all columns and all errors."""
    rows = [HEADINGS, *map(_columns, views)]
    errors = [_ERRORS, *(_errors(view, wide) for view in views)]
    unused = set() if namespaces else {_NAMESPACE}
    if not wide:
        unused |= {_GROUPS, _NODES} | (set() if any(view.fabric_domains for view in views) else {_DOMAINS})
    room = min(max(map(cell_len, errors)), _ERROR_CELLS)
    found: list[str] = []
    for hidden in ((), (_AGE,), (_AGE, _TOPOLOGY), (_AGE, _TOPOLOGY, _GANGS)):
        found = _aligned(rows, [i for i in range(len(HEADINGS)) if i not in unused.union(hidden)])
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
        _available_groups(view),
        str(len({pod.node for pod in view.pods if pod.node})),
        _ready_domains(view),
        "/".join(filter(None, (view.topology.name, view.topology.required))) if view.topology else "-",
        age_text(view.age_seconds),
    )


def _available_groups(view: SetView) -> str:
    """The replicas of all groups."""
    available = sum(each.available for each in view.groups)
    replicas = sum(each.replicas for each in view.groups)
    return f"{available}/{replicas}" if view.groups else "-"


def _ready_domains(view: SetView) -> str:
    domains = view.fabric_domains
    return f"{sum(each.usable for each in domains)}/{len(domains)}" if domains else "-"


def _errors(view: SetView, wide: bool) -> str:
    """The errors of a set, its groups and its cliques: all, or the first and how many more there are."""
    errors = list(dict.fromkeys(map(one_line, view.all_errors)))
    if not errors:
        return "-"
    if wide or len(errors) == 1:
        return "; ".join(errors)
    return f"{errors[0]} (and {len(errors) - 1} more)"
