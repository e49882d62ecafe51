"""Searches sets, gangs, pods, nodes and domains by their names."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from grove import timing
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.dashboard.board import Board
from grove.dashboard.model import GangSummary, NodeCells, SetSummary, TopologySummary
from grove.dashboard.pages.errors import PageError
from grove.dashboard.pages.model import SearchHit, SearchPage
from grove.dashboard.rights import Rights

_KINDS = ("set", "gang", "node", "domain", "pod")
"""In the order in which equally good hits are listed."""
_Place = tuple[str, str, str]
"""A topology, the name of a level, and a domain."""


class _Candidate(NamedTuple):
    """A hit before its details are written: of thousands only the best are."""

    rank: tuple[int, int, int, str, str]
    kind: str
    namespace: str
    name: str
    more: Any


def search_hits(board: Board, rights: Rights, text: str) -> SearchPage:
    """What has the text in its name, or in `namespace/name` if it has a slash. Raises PageError."""
    if len(text) > timing.LONGEST_SEARCH:
        raise PageError(
            HTTPStatus.BAD_REQUEST,
            f"the text has {len(text)} characters: search for {timing.LONGEST_SEARCH} at most",
        )
    wanted = text.strip().lower()
    if not wanted:
        return SearchPage(())
    found = heapq.nsmallest(
        timing.SEARCH_HITS, _candidates(board, rights, wanted), key=lambda each: each.rank
    )
    return SearchPage(tuple(map(_hit, found)))


def _candidates(board: Board, rights: Rights, wanted: str) -> Iterator[_Candidate]:
    """Names of objects are in lower case."""
    whole = "/" in wanted
    workloads: tuple[tuple[str, Mapping[str, Any]], ...] = (("set", board.sets()), ("gang", board.gangs()))
    for kind, summaries in workloads:
        for key, summary in summaries.items():
            namespace, _, name = key.partition("/")
            if wanted in key and rights.sees(namespace):
                yield from _candidate(kind, namespace, name, summary, wanted)
    for pod in board.pods():
        meta = pod.metadata
        if (whole or wanted in meta.name) and rights.sees(meta.namespace):
            yield from _candidate("pod", meta.namespace, meta.name, pod, wanted)
    nodes = board.nodes()
    if rights.nodes and nodes is not None:
        for name, node in nodes.items():
            if wanted in name:
                yield from _candidate("node", "", name, node, wanted)
        for place, count in _domains(board.topologies(), nodes.values()):
            yield from _candidate("domain", "", place[2], (place, count), wanted)


def _candidate(kind: str, namespace: str, name: str, more: Any, wanted: str) -> Iterator[_Candidate]:
    key = f"{namespace}/{name}" if "/" in wanted else name.lower()
    position = key.find(wanted)
    if position >= 0:
        match = 0 if key == wanted else 1 if position == 0 else 2
        rank = match, _KINDS.index(kind), len(name), name, namespace
        yield _Candidate(rank, kind, namespace, name, more)


def _domains(
    topologies: tuple[TopologySummary, ...], nodes: Iterable[NodeCells]
) -> Iterator[tuple[_Place, int]]:
    """The domains of each topology, with the number of their nodes."""
    levels = {
        level.label: (topology.name, level.name)
        for topology in reversed(topologies)
        for level in topology.levels
    }
    domains = (node.domains.items() for node in nodes)
    for (label, domain), count in Counter(chain.from_iterable(domains)).items():
        if label in levels:
            yield (*levels[label], domain), count


def _hit(found: _Candidate) -> SearchHit:
    kind, namespace, name, more = found.kind, found.namespace, found.name, found.more
    match kind:
        case "set":
            detail, link = _set(more, namespace, name)
        case "gang":
            detail, link = _gang(more, namespace, name)
        case "node":
            detail, link = _node_text(more), _map(node=name)
        case "domain":
            detail, link = _domain(*more)
        case _:
            detail, link = _pod(more, namespace, name)
    return SearchHit(kind, name, namespace, detail, link)


def _set(summary: SetSummary, namespace: str, name: str) -> tuple[str, str]:
    detail = f"{summary.verdict}: {summary.summary}".strip(": ")
    return detail, f"#/workloads/{quote(namespace)}/{quote(name)}"


def _domain(place: _Place, count: int) -> tuple[str, str]:
    topology, level, domain = place
    detail = f"{level}, {count} node{'s' * (count != 1)}"
    return detail, _map(topology=topology, domain=f"{level}/{domain}")


def _pod(pod: Pod, namespace: str, name: str) -> tuple[str, str]:
    workload = pod.metadata.labels.get(labels.PART_OF, "")
    link = f"#/workloads/{quote(namespace)}/{quote(workload)}?object=pod/{quote(name)}"
    return pod.spec.node_name or "no node yet", link


def _gang(gang: GangSummary, namespace: str, name: str) -> tuple[str, str]:
    if gang.waiting is not None:
        return f"waits: {gang.waiting.code}", f"#/waiting/{quote(namespace)}/{quote(name)}"
    return f"{gang.phase}, {gang.ready}/{gang.pods} pods ready", _map(gang=f"{namespace}/{name}")


def _node_text(node: NodeCells) -> str:
    used = sum(each.gpus for each in node.uses if not each.reserved)
    states = [
        *(["not ready"] if not node.ready else []),
        *(["cordoned"] if node.cordoned else []),
        f"{used}/{node.gpus} GPUs used",
    ]
    return ", ".join(states)


def _map(**query: str) -> str:
    return f"#/map?{urlencode(query, quote_via=quote, safe='/')}"
