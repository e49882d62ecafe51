"""Lays out the status of an object as one page of text within a given width. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from grove import timing
from grove.cli.views.explanation_lines import ExplainedLine, fitted, more_line, reason_lines, wrapped
from grove.cli.views.status.columns import Rows, aligned
from grove.views.age import age_text
from grove.views.operator_view import operator_line
from grove.views.set_view import FabricDomainView, seconds_since
from grove.views.status.model import (
    ConstraintsView,
    ErrorView,
    GangStatusView,
    GraphView,
    RolloutView,
    StatusView,
    Verdict,
)

_UNLIMITED = 10_000
_STYLES = {
    Verdict.HEALTHY: "bold green",
    Verdict.PROGRESSING: "bold cyan",
    Verdict.TERMINATING: "bold cyan",
    Verdict.WAITING: "bold yellow",
    Verdict.DEGRADED: "bold red",
    Verdict.UNKNOWN: "bold red",
}
_RUNNING = "Running"


def status_lines(found: StatusView, lease: str, now: float, width: int | None = None) -> list[ExplainedLine]:
    """The page: the verdict first. `lease`: the name of the operator's Lease."""
    size = max(width or _UNLIMITED, 1)
    return list(fitted(_lines(found, lease, now, size), size))


def _lines(found: StatusView, lease: str, now: float, width: int) -> Iterator[ExplainedLine]:
    yield from wrapped(f"{found.about}: {found.verdict}", width, "", _STYLES[found.verdict])
    yield from wrapped(found.summary, width, "")
    for name, text in _facts(found, lease, now):
        yield from wrapped(f"{name}: {text}", width, "", "", "  ")
    if found.graph is not None:
        yield from _components(found.graph, width)
    roles = [(each.name, f"{each.ready}/{each.pods}", f"{each.updated}/{each.pods}") for each in found.roles]
    yield from _table("roles", ("ROLE", "READY", "UPDATED"), roles, width, "role", (2,))
    yield from _gangs(found.gangs, width)
    yield from _fabric_domains(found.fabric_domains, width)
    if found.waits_for:
        yield ExplainedLine("waits for", "bold")
    for number, reason in enumerate(found.waits_for, start=1):
        yield from reason_lines(number, reason, now, width)
    yield from _errors(found.errors, now, width)


def _facts(found: StatusView, lease: str, now: float) -> Iterator[tuple[str, str]]:
    """What has one line each."""
    if found.operator is not None:
        if found.operator.alive:
            yield "operator", f"{found.operator.holder} leads"
        else:
            yield "operator", operator_line(found.operator, lease).removeprefix("operator: ")
    if found.graph is not None:
        message = f": {found.graph.message}" if found.graph.message else ""
        yield "graph", f"{found.graph.name} is {found.graph.state}{message}"
    if found.rollout is not None:
        yield "update", _rollout(found.rollout, now)
    if found.constraints is not None:
        yield "constraints", _constraints(found.constraints)


def _rollout(found: RolloutView, now: float) -> str:
    if found.state == "Complete":
        return f"complete since {age_text(seconds_since(found.ended, now))}"
    counts = [
        f"{done}/{total} {what}"
        for done, total, what in (
            (found.updated_replicas, found.replicas, "replicas"),
            (found.updated_cliques, found.cliques, "cliques"),
            (found.updated_groups, found.groups, "groups"),
        )
        if total
    ]
    states = {"Paused": "paused", "DeadlineExceeded": "makes no progress"}
    state = states.get(found.state, "in progress")
    since = f" since {age_text(seconds_since(found.started, now))}" if found.started else ""
    updating = ", ".join(map(str, found.updating))
    now_at = f", now replica {updating}" if updating else ""
    return f"{state}{since}: {', '.join(counts)} updated{now_at}"


def _constraints(found: ConstraintsView) -> str:
    required = f"each replica in one {found.required}, " if found.required else ""
    topology = f"topology {found.topology}, " if found.topology else ""
    if found.enforced is None:
        return f"{required}{topology}not known yet whether they are enforced"
    state = "enforced" if found.enforced else "not enforced"
    why = found.message or found.reason
    return f"{required}{topology}{state}{f': {why}' if why else ''}"


def _components(graph: GraphView, width: int) -> Iterator[ExplainedLine]:
    rows = [
        (each.name, each.kind, f"{each.ready}/{each.replicas}", f"{each.updated}/{each.replicas}")
        for each in graph.components
    ]
    yield from _table(
        "components", ("COMPONENT", "KIND", "READY", "UPDATED"), rows, width, "component", (1, 3)
    )


def _gangs(gangs: Sequence[GangStatusView], width: int) -> Iterator[ExplainedLine]:
    """The gangs, those that do not run first."""
    ordered = sorted(gangs, key=lambda each: each.phase == _RUNNING and not each.unhealthy)
    headings = ("GANG", "PHASE", "READY", "DOMAIN", "SCORE", "CONSTRAINTS", "PROBLEM")
    yield from _table("gangs", headings, list(map(_gang, ordered)), width, "gang", (5, 4, 6))


def _gang(found: GangStatusView) -> tuple[str, ...]:
    own = found.domains.get(found.name)
    parts = dict.fromkeys(found.domains.values())
    enforced = {True: "enforced", False: "not enforced", None: ""}[found.enforced]
    fallback = f"by fallback {found.fallback}" if found.fallback is not None else ""
    return (
        found.name,
        found.phase,
        f"{found.ready}/{found.pods}",
        own or ", ".join(parts),
        f"{found.score:.2f}" if found.score is not None else "",
        ", ".join(filter(None, (enforced, fallback))),
        found.unhealthy,
    )


def _fabric_domains(domains: Sequence[FabricDomainView], width: int) -> Iterator[ExplainedLine]:
    ordered = sorted(domains, key=lambda each: each.usable)
    rows = [
        (each.name, each.state, f"{each.ready}/{each.nodes}", ", ".join(each.partitions)) for each in ordered
    ]
    headings = ("DOMAIN", "PHASE", "NODES", "PARTITIONS")
    yield from _table("fabric domains", headings, rows, width, "domain", (3,))


def _errors(errors: Sequence[ErrorView], now: float, width: int) -> Iterator[ExplainedLine]:
    if errors:
        yield ExplainedLine("errors, the latest first", "bold")
    for each in errors[: timing.STATUS_ROWS]:
        age = age_text(seconds_since(each.observed_at, now))
        text = f"{each.about.kind} {each.about.name}, {each.code}, {age} ago: {each.description}"
        yield from wrapped(text, width, "  ", "red", "    ")
    yield from more_line(len(errors) - timing.STATUS_ROWS, "error", "errors")


def _table(
    title: str, headings: Sequence[str], rows: Rows, width: int, what: str, hidden: Iterable[int]
) -> Iterator[ExplainedLine]:
    """A table under its title; only as many rows as one page has room for."""
    if not rows:
        return
    yield ExplainedLine(title, "bold")
    lines = aligned(headings, rows[: timing.STATUS_ROWS], max(width - 2, 1), tuple(hidden))
    yield from (ExplainedLine(f"  {line}") for line in lines)
    yield from more_line(len(rows) - timing.STATUS_ROWS, what, f"{what}s")
