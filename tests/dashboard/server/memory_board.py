"""A board in memory, and pages that show what they are called with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from http import HTTPStatus
from typing import Any

from grove.api.types.pod import Pod
from grove.cluster_state.model import ClusterState
from grove.dashboard.board import Board
from grove.dashboard.model import (
    Connection,
    Delta,
    GangSummary,
    Heartbeat,
    NodeCells,
    Picture,
    SetSummary,
    Source,
    TopologySummary,
    Viewer,
)
from grove.dashboard.pages.errors import PageError
from grove.dashboard.pages.node import check_may_list
from grove.dashboard.rights import Rights
from grove.dashboard.server.page_functions import Pages
from grove.explanation.events import Event
from grove.explanation.operator_lease import Leases
from grove.explanation.subtree import Objects
from grove.kube.client.resource import Resource
from grove.kube.errors import ConnectError
from grove.operator.caches.cluster_pods import ClusterPod
from grove.views.status.model import Verdict

NOW = "2026-01-01T00:00:00Z"


class MemoryBoard:
    """Sets of some namespaces; each `change` is a version. What only pages read is refused: the server itself
    must not call it."""

    source = Source("memory")

    def __init__(self, *namespaces: str) -> None:
        self._namespaces = frozenset(namespaces)
        self.changes: list[Delta] = []
        self.oldest = 0
        self.open_streams = 0
        self._changed = asyncio.Condition()

    async def change(self, key: str, summary: str = "changed") -> None:
        """Change a set."""
        version = str(len(self.changes) + 1)
        sets = {key: SetSummary(Verdict.HEALTHY, summary)}
        async with self._changed:
            self.changes.append(Delta(version, NOW, sets=sets))
            self._changed.notify_all()

    def picture(self, rights: Rights) -> Picture:
        seen = {f"{each}/demo": SetSummary(Verdict.HEALTHY) for each in self._namespaces if rights.sees(each)}
        namespaces = None if rights.namespaces is None else tuple(rights.namespaces)
        viewer, version = Viewer(namespaces=namespaces, nodes=rights.nodes), str(len(self.changes))
        return Picture(version, NOW, self.source, viewer, unread=rights.unread, sets=seen)

    async def deltas(self, rights: Rights, since: str) -> AsyncIterator[Delta | None]:
        if not since.isdigit() or int(since) < self.oldest:
            yield None
            return
        await self._count(1)
        try:
            at = int(since)
            while True:
                while len(self.changes) <= at:
                    async with self._changed:
                        await self._changed.wait()
                delta = self.changes[at]
                if "a/broken" in delta.sets:
                    raise ZeroDivisionError
                at += 1
                if all(rights.sees(key.partition("/")[0]) for key in delta.sets):
                    yield delta
        finally:
            await self._count(-1)

    async def _count(self, difference: int) -> None:
        async with self._changed:
            self.open_streams += difference
            self._changed.notify_all()

    async def until_streams(self, number: int) -> None:
        """Until so many streams are open."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.open_streams == number)

    is_settled = True

    def heartbeat(self, _rights: Rights) -> Heartbeat:
        return Heartbeat(NOW, Connection(), None)

    def namespaces(self) -> frozenset[str]:
        return self._namespaces

    def sets(self) -> dict[str, SetSummary]:
        raise NotImplementedError

    def gangs(self) -> dict[str, GangSummary]:
        raise NotImplementedError

    def nodes(self) -> dict[str, NodeCells] | None:
        raise NotImplementedError

    def topologies(self) -> tuple[TopologySummary, ...]:
        raise NotImplementedError

    def objects(self, namespace: str) -> Objects:
        raise NotImplementedError

    def pods(self) -> Iterable[Pod]:
        raise NotImplementedError

    def leases(self) -> Leases:
        raise NotImplementedError

    def node_pods(self, node: str) -> Iterable[ClusterPod]:
        raise NotImplementedError

    async def state(self) -> ClusterState:
        raise NotImplementedError

    async def events(self, namespace: str) -> Sequence[Event]:
        raise NotImplementedError

    async def read(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        raise NotImplementedError


class Echo:
    """Objects named `absent` do not exist; explanations wait for `release`."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.release.set()
        self.explained = 0
        self.pages = Pages(
            self.workload_page, self.explanation_page, self.node_page, self.search_hits, self.object_yaml
        )

    def workload_page(
        self, _board: Board, _rights: Rights, namespace: str, name: str, *, graphs: bool
    ) -> dict[str, object]:
        if name == "broken":
            raise ZeroDivisionError
        if name == "absent":
            raise PageError(HTTPStatus.NOT_FOUND, f"no {name}")
        return {"workload": f"{namespace}/{name}", "graphs": graphs}

    async def explanation_page(
        self, _board: Board, _rights: Rights, namespace: str, name: str, *, graphs: bool
    ) -> dict[str, object]:
        self.explained += 1
        await self.release.wait()
        if name == "set/refused":
            raise ConnectError("no answer about namespace secret")
        return {"explained": f"{namespace}/{name}", "graphs": graphs}

    def node_page(self, _board: Board, rights: Rights, name: str) -> dict[str, str]:
        check_may_list(rights)
        return {"node": name}

    async def search_hits(self, _board: Board, _rights: Rights, text: str) -> dict[str, str]:
        return {"found": text}

    async def object_yaml(self, _board: Board, _rights: Rights, namespace: str, kind: str, name: str) -> str:
        return f"kind: {kind}\nmetadata: {namespace}/{name}\n"
