"""Lays out views as lines of text, as a tree, within a given width. Pure.

A line has a name, which users copy into the next command, and facts (counts, state). A line that is too wide
is shortened in this order: the prefix that a name shares with its parent is left out, then facts are left
out, the last one first, then the rest is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.cells import cell_len
from rich.text import Text

from grove.cli.printable import printable
from grove.cli.views.line_width import one_line, shorten
from grove.views.claim_view import ClaimView
from grove.views.set_view import (
    CliqueView,
    FabricDomainView,
    GangView,
    GroupView,
    PodView,
    ReplicaView,
    SetView,
)

GOOD, WAITING, BAD = "green", "yellow", "red"
_COUNTS = 16  # cells reserved for counts; a longer text is a message
_STYLES = {"ready": GOOD, "succeeded": GOOD, "failed": BAD, "failing": BAD}


class Row(Struct, frozen=True):
    """A line before it is fitted to a width."""

    name: str
    facts: tuple[str, ...] = ()
    style: str = WAITING
    children: tuple[Row, ...] = ()
    parent: str = ""
    """A name that begins with this prefix may be shortened by it."""


class TextLine(Struct, frozen=True):
    """A line that fits: guides, name and facts, with the colour of its state."""

    guides: str
    name: str
    facts: str
    style: str

    @property
    def text(self) -> str:
        return f"{self.guides}{self.name}  {self.facts}".rstrip()


def tree(view: SetView, *, pods: bool = True) -> Row:
    """A set with everything below it."""
    facts = [f"{view.available}/{view.replicas} available"]
    if view.terminating:
        facts.append("terminating")
    below = [*_claims(view.claims, view.name)]
    below += [_replica(view, replica, pods) for replica in view.members]
    below += _errors(view.own_errors)
    style = BAD if view.own_errors or view.terminating else _style(view.available, view.replicas)
    return Row(view.name, tuple(facts), style, tuple(below))


def _replica(view: SetView, replica: ReplicaView, pods: bool) -> Row:
    gangs = {gang.name: gang for gang in replica.gangs}
    name = f"{view.name}-{replica.index}"
    base = gangs.get(name)
    below = [*_waiting(base), *_fabric_domains(replica.fabric_domains), *_claims(replica.claims, name)]
    below += [_clique(clique, name, pods) for clique in replica.cliques]
    below += [_group(group, gangs, name, pods) for group in replica.groups]
    style = GOOD if all(gang.phase == "Running" for gang in replica.gangs) else WAITING
    return Row(f"replica {replica.index}", _gang(base, name), style, tuple(below))


def _group(group: GroupView, gangs: dict[str, GangView], parent: str, pods: bool) -> Row:
    below = [*_claims(group.claims, group.name)]
    for member in group.members:
        name, gang = f"{group.name}-{member.index}", gangs.get(member.gang)
        inside = [*_waiting(gang)] if member.gang != parent else []  # the base gang is shown above
        inside += _claims(member.claims, name)
        inside += (_clique(clique, name, pods) for clique in member.cliques)
        whole = all(clique.ready >= clique.needed for clique in member.cliques)
        style = GOOD if whole else WAITING
        below.append(Row(f"replica {member.index}", _gang(gang, name), style, tuple(inside)))
    counts = _counts(group.available, group.replicas, group.needed, "available")
    style = BAD if group.errors else _style(group.available, group.replicas)
    return Row(group.name, counts, style, (*below, *_errors(group.errors)), parent)


def _clique(clique: CliqueView, parent: str, pods: bool) -> Row:
    counts = _counts(clique.ready, clique.replicas, clique.needed, "ready")
    below = [*_claims(clique.claims, clique.name)]
    below += [_pod(pod, clique.name) for pod in clique.pods] if pods else []
    style = BAD if clique.errors else _style(clique.ready, clique.replicas)
    return Row(clique.name, counts, style, (*below, *_errors(clique.errors)), parent)


def _fabric_domains(domains: Sequence[FabricDomainView]) -> Iterator[Row]:
    """Domains have names of their own, and are not shortened: users copy them."""
    for domain in domains:
        facts = [f"fabric domain {domain.state}"]
        if domain.nodes:
            facts.append(f"{domain.ready}/{domain.nodes} nodes ready")
        if domain.partitions:
            plural = "s" if len(domain.partitions) > 1 else ""
            facts.append(f"partition{plural} {', '.join(domain.partitions)}")
        unusable = len(domain.partitions) > 1 or domain.phase in ("Conflict", "Degraded", "Terminating")
        style = BAD if unusable else GOOD if domain.usable else WAITING
        yield Row(domain.name, tuple(facts), style)


def _claims(claims: Sequence[ClaimView], parent: str) -> Iterator[Row]:
    for claim in claims:
        used = () if not claim.pods else (f"used by {claim.pods} pod{'' if claim.pods == 1 else 's'}",)
        style = GOOD if claim.state in ("allocated", "reserved") else WAITING
        yield Row(claim.name, (f"claim {claim.state}", *used), style, parent=parent)


def _errors(errors: Sequence[str]) -> Iterator[Row]:
    return (Row("error", (one_line(error),), BAD) for error in errors)


def _pod(pod: PodView, parent: str) -> Row:
    if pod.why and not pod.node:  # one fact, so that a narrow line shows the beginning of the message
        facts: tuple[str, ...] = (f"{pod.state}: {pod.why}",)
    else:
        facts = (pod.state, *filter(None, (pod.node and f"on {pod.node}", pod.why)))
    return Row(pod.name, facts, _STYLES.get(pod.state, WAITING), parent=parent)


def _gang(gang: GangView | None, unit: str) -> tuple[str, ...]:
    """A gang, and the domain of a part of it, or of the whole gang."""
    if gang is None:
        return ()
    domain = gang.domains.get(unit) or gang.domains.get(gang.name)
    return (gang.phase, f"gang {gang.name}", *filter(None, (domain,)))


def _waiting(gang: GangView | None) -> Iterator[Row]:
    if gang is not None and gang.why:
        yield Row("waiting", (one_line(gang.why),))


def _counts(done: int, wanted: int, needed: int, what: str) -> tuple[str, ...]:
    counts = f"{done}/{wanted} {what}"
    return (counts, f"{needed} needed") if 0 < needed < wanted else (counts,)


def _style(done: int, wanted: int) -> str:
    return GOOD if done >= wanted else WAITING


def lines(row: Row, width: int | None = None) -> Iterator[TextLine]:
    """A tree as lines of at most this width; None: unlimited."""
    yield _fit(row, "", width)
    yield from _children(row, "", width)


def _children(row: Row, guides: str, width: int | None) -> Iterator[TextLine]:
    for number, child in enumerate(row.children, start=1):
        last = number == len(row.children)
        yield _fit(child, guides + ("└─ " if last else "├─ "), width)
        yield from _children(child, guides + ("   " if last else "│  "), width)


def _fit(row: Row, guides: str, width: int | None) -> TextLine:
    names = [row.name]
    if row.parent and row.name.startswith(f"{row.parent}-"):
        names.append("…" + row.name.removeprefix(row.parent))
    line = _line(row, guides, names[0], len(row.facts))
    for name in names:
        for facts in range(len(row.facts), 0, -1):
            line = _line(row, guides, name, facts)
            if width is None or cell_len(line.text) <= width:
                return line
            if name is not names[-1]:
                break  # a shorter name before fewer facts
    return line if width is None or cell_len(line.text) <= width else _cut(line, width)


def _line(row: Row, guides: str, name: str, facts: int) -> TextLine:
    return TextLine(guides, printable(name), printable(", ".join(row.facts[:facts])), row.style)


def _cut(line: TextLine, width: int) -> TextLine:
    """Cuts the end of a message first, then the end of the name, and the counts last."""
    room = width - cell_len(line.guides)
    kept = max(room - min(cell_len(line.facts), _COUNTS) - 2, min(8, cell_len(line.name)))
    name = shorten(line.name, min(kept, max(room, 1)))
    return TextLine(line.guides, name, shorten(line.facts, max(room - cell_len(name) - 2, 0)), line.style)


def coloured(line: TextLine) -> Text:
    return Text.assemble((line.guides, "dim"), (line.name, "bold"), "  ", (line.facts, line.style))
