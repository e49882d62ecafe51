"""What a viewer sees, by their rights. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove.api.formats.name_list import name_list
from grove.cluster_state import model as cluster_state
from grove.cluster_state.model import UnreadKind
from grove.dashboard.model import Connection, NodeCells, Use
from grove.dashboard.problems import Problem, problem_text
from grove.dashboard.rights import Rights
from grove.explanation.model import EventView

T = TypeVar("T")
NODES, GANGS, SETS = "nodes", "gangs", "sets"
"""What is summarized."""
_DISCONNECTED = "the API server does not answer as needed"


class NamespacedEvent(Struct, frozen=True):
    """An event, and the namespace that it is stored in: that of its object, or `default`."""

    namespace: str
    event: EventView


def sees_key(rights: Rights, key: str) -> bool:
    """Whether a set or gang, given by its key, is visible."""
    return rights.sees(key.partition("/")[0])


def visible_cells(cells: NodeCells | None, rights: Rights) -> NodeCells | None:
    """A node. What gangs use that are not visible is added to what others use."""
    if cells is None or not rights.nodes:
        return None
    if rights.namespaces is None or all(not use.gang or sees_key(rights, use.gang) for use in cells.uses):
        return cells
    return replace(cells, uses=tuple(_merged(cells.uses, rights)))


def _merged(uses: Iterable[Use], rights: Rights) -> Iterable[Use]:
    hidden: dict[bool, Use] = {}
    for use in uses:
        if use.gang and sees_key(rights, use.gang):
            yield use
        else:
            known = hidden.get(use.reserved, Use(reserved=use.reserved))
            hidden[use.reserved] = replace(known, gpus=known.gpus + use.gpus, pods=known.pods + use.pods)
    yield from (hidden[reserved] for reserved in sorted(hidden))


def visible(found: Mapping[str, T], rights: Rights) -> dict[str, T]:
    """Sets or gangs, by their keys."""
    if rights.namespaces is None:
        return dict(found)
    return {key: each for key, each in found.items() if sees_key(rights, key)}


def visible_events(events: Iterable[NamespacedEvent], rights: Rights) -> tuple[EventView, ...]:
    """Events of visible namespaces."""
    return tuple(
        each.event
        for each in events
        if rights.sees(each.namespace)
        and (not each.event.about.namespace or rights.sees(each.event.about.namespace))
    )


def visible_connection(connection: Connection, rights: Rights) -> Connection:
    """The connection. Its problem is that of any watch, also of one in another namespace."""
    if connection.connected or rights.reads_problems_of(""):
        return connection
    return replace(connection, problem=_DISCONNECTED)


class Unread(Struct, frozen=True):
    """What the server of the dashboard could not read."""

    problems: tuple[Problem, ...] = ()
    """Of whole kinds."""
    undecodable: Mapping[str, frozenset[tuple[str, str]]] = {}
    """By resource, namespace and name of objects that are skipped because they cannot be decoded."""
    kinds: tuple[str, ...] = ()
    """Lines about kinds that are not served, or still being read: they name nothing else."""
    failed: Mapping[str, frozenset[str]] = {}
    """By kind, the keys of nodes, gangs and sets that could not be summarized: what is shown is outdated."""


def unread_lines(unread: Unread, rights: Rights) -> tuple[str, ...]:
    """What a viewer does not see, and why."""
    problems = dict.fromkeys(
        UnreadKind(each.resource, problem_text(each, rights)) for each in unread.problems
    )
    found = [*rights.unread, *cluster_state.unread_lines(problems), *unread.kinds]
    for resource, keys in unread.undecodable.items():
        names = sorted("/".join(filter(None, key)) for key in keys if key[1] and rights.sees(key[0]))
        if names:
            found.append(f"{resource}: cannot be decoded: {name_list(names)}")
    for kind, failed in unread.failed.items():
        names = sorted(key for key in failed if (rights.nodes if kind == NODES else sees_key(rights, key)))
        if names:
            found.append(f"{kind}: shown as they were, because of an error: {name_list(names)}")
    return tuple(dict.fromkeys(found))
