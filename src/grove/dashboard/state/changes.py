"""Pictures for viewers with different rights, and what a change of the cluster changes of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from grove.dashboard.model import (
    Connection,
    Delta,
    GangSummary,
    NodeCells,
    Picture,
    SetSummary,
    Source,
    TopologySummary,
    Viewer,
)
from grove.dashboard.rights import Rights
from grove.dashboard.state.visibility import (
    NamespacedEvent,
    Unread,
    sees_key,
    unread_lines,
    visible,
    visible_cells,
    visible_connection,
    visible_events,
)
from grove.views.operator_view import OperatorView

T = TypeVar("T")
Pairs = Mapping[str, tuple[T | None, T | None]]
"""By key, a summary before and after a change; None: there is none."""


class Facts(Struct, frozen=True):
    """What is not about a single node, gang or set."""

    connection: Connection = Connection()
    operator: OperatorView | None = None
    topologies: tuple[TopologySummary, ...] = ()
    unread: Unread = Unread()


class Contents(Struct):
    """Everything that the dashboard knows, before rights are applied."""

    nodes: dict[str, NodeCells] = {}
    gangs: dict[str, GangSummary] = {}
    sets: dict[str, SetSummary] = {}
    facts: Facts = Facts()


class Change(Struct, frozen=True):
    """One change of the contents."""

    now: str
    nodes: Pairs[NodeCells] = {}
    gangs: Pairs[GangSummary] = {}
    sets: Pairs[SetSummary] = {}
    facts: tuple[Facts, Facts] = (Facts(), Facts())
    events: tuple[NamespacedEvent, ...] = ()

    @property
    def size(self) -> int:
        """How many parts change."""
        return len(self.nodes) + len(self.gangs) + len(self.sets) + len(self.events) + 1

    @property
    def is_empty(self) -> bool:
        before, after = self.facts
        return self.size == 1 and before == after


def merged(changes: Sequence[Change]) -> Change:
    """Several changes, in their order, as one. An event that was repeated is in it once."""
    first, last = changes[0], changes[-1]
    events = {(each.namespace, each.event.name): each for change in changes for each in change.events}
    return Change(
        last.now,
        _merged_pairs([each.nodes for each in changes]),
        _merged_pairs([each.gangs for each in changes]),
        _merged_pairs([each.sets for each in changes]),
        (first.facts[0], last.facts[1]),
        tuple(events.values()),
    )


def _merged_pairs(found: Sequence[Pairs[T]]) -> dict[str, tuple[T | None, T | None]]:
    result: dict[str, tuple[T | None, T | None]] = {}
    for pairs in found:
        for key, (before, after) in pairs.items():
            result[key] = (result[key][0] if key in result else before, after)
    return result


def picture(
    contents: Contents,
    events: Sequence[NamespacedEvent],
    rights: Rights,
    *,
    version: str,
    now: str,
    source: Source,
    most_events: int,
) -> Picture:
    """Everything that a viewer sees."""
    facts = contents.facts
    cells = ((name, visible_cells(each, rights)) for name, each in contents.nodes.items())
    return Picture(
        version=version,
        now=now,
        source=source,
        viewer=Viewer(
            namespaces=None if rights.namespaces is None else tuple(sorted(rights.namespaces)),
            nodes=rights.nodes,
        ),
        connection=visible_connection(facts.connection, rights),
        operator=facts.operator,
        unread=unread_lines(facts.unread, rights),
        topologies=facts.topologies,
        nodes={name: each for name, each in cells if each is not None},
        gangs=visible(contents.gangs, rights),
        sets=visible(contents.sets, rights),
        events=visible_events(events, rights)[-most_events:],
    )


def delta(change: Change, rights: Rights, version: str) -> Delta | None:
    """What a change changes for a viewer; None: nothing."""
    before, after = change.facts

    def differing(read: Callable[[Facts], T]) -> T | None:
        return read(after) if read(before) != read(after) else None

    found = Delta(
        version=version,
        now=change.now,
        connection=differing(lambda facts: visible_connection(facts.connection, rights)),
        operator=differing(lambda facts: facts.operator),
        unread=differing(lambda facts: unread_lines(facts.unread, rights)),
        topologies=differing(lambda facts: facts.topologies),
        nodes=_differing_nodes(change.nodes, rights),
        gangs=_differing(change.gangs, rights),
        sets=_differing(change.sets, rights),
        events=visible_events(change.events, rights),
    )
    return found if found != Delta(version, change.now) else None


def _differing(pairs: Pairs[T], rights: Rights) -> dict[str, T | None]:
    return {key: new for key, (old, new) in pairs.items() if old != new and sees_key(rights, key)}


def _differing_nodes(pairs: Pairs[NodeCells], rights: Rights) -> dict[str, NodeCells | None]:
    seen = {
        key: (visible_cells(old, rights), visible_cells(new, rights)) for key, (old, new) in pairs.items()
    }
    return {key: new for key, (old, new) in seen.items() if old != new}
