"""The board of a cluster, kept up to date by watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from grove import timing
from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cluster_state.model import ClusterState
from grove.cluster_state.reading import merged_state, read_state, server_version
from grove.dashboard.cut_texts import cut
from grove.dashboard.model import Connection, Source
from grove.dashboard.shared_reads import SharedReads
from grove.dashboard.state.base import CachedBoard
from grove.dashboard.state.changes import Facts
from grove.dashboard.state.observed import Observed
from grove.dashboard.state.recent_events import RecentEvents
from grove.dashboard.state.refresh import Refresher
from grove.dashboard.state.watches import Watches
from grove.explanation.events import Event
from grove.explanation.explain import Preparation
from grove.kube.client.client import Client
from grove.kube.client.resource import (
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEASES,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from grove.kube.errors import KubeError
from grove.logger import get_logger
from grove.plan.timestamps import rfc3339
from grove.views.operator_view import OperatorView, operator_view

log = get_logger("grove.dashboard")

_NOT_EXPLAINED = frozenset({SERVICES, HORIZONTAL_POD_AUTOSCALERS, SERVICE_ACCOUNTS, ROLES})
"""What an operator reads and no reason depends on: no right to it is needed."""
_ELSEWHERE = "default"
"""Where a kind is read that may not be listed in the whole cluster."""


class LiveBoard(CachedBoard):
    """The state of a cluster as it is now."""

    def __init__(
        self, client: Client, namespaces: Sequence[str], nodes: bool, lease: str, source: str
    ) -> None:
        self._client, self._namespaces = client, namespaces
        self._changed = asyncio.Event()
        observed = Observed(lease, nodes=nodes, changed=self._changed.set)
        events = RecentEvents(self._changed.set)
        super().__init__(observed, Refresher(observed, events, Source(source)))
        self._watches = Watches(client, observed, events, namespaces)
        self._lease_namespace, _, name = lease.rpartition("/")
        explained = Preparation(name).kinds
        self._kinds = [each for each in explained if each.resource not in _NOT_EXPLAINED]
        self._events = SharedReads(self._read_events, timing.DASHBOARD_EVENTS_AGE)
        self._reading: asyncio.Task[ClusterState] | None = None
        self._unread = set[str]()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch until the block is left. The block begins when everything is listed, or when that has taken
        too long."""
        async with self._watches.running():
            tasks: list[asyncio.Task[Any]] = []
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(timing.DASHBOARD_START):
                        while not self._watches.settled:
                            await self._change()
                await self._refresh()
                tasks += (asyncio.create_task(self._read_version()), asyncio.create_task(self._follow()))
                yield
            finally:
                self._events.close()
                tasks += [self._reading] if self._reading is not None else []
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _change(self) -> None:
        """Wait for an event, or until it is time to look at what changes without one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timing.DASHBOARD_CHECK):
                await self._changed.wait()
        if self._changed.is_set():
            await asyncio.sleep(timing.DASHBOARD_INTERVAL)
            self._changed.clear()

    async def _follow(self) -> None:
        while True:
            await self._change()
            await self._refresh()

    async def _refresh(self) -> None:
        """Compute what is outdated. If that fails, pages say so, and it is tried again: the page must not
        stop for ever."""
        now = time.time()
        try:
            for _ in self._refresher.steps(self._facts(now)):
                await asyncio.sleep(0)
        except Exception as bug:
            log.exception("refresh failed", key="dashboard", action="try again", reason=str(bug))
            problem = f"the dashboard cannot refresh the page ({cut(str(bug))}): see its log"
            since = self._interruption.since if self._interruption is not None else rfc3339(now)
            self._interruption = Connection(connected=False, problem=problem, since=since)
        else:
            self._interruption = None

    @property
    def is_settled(self) -> bool:
        """Whether everything is listed that can be."""
        return self._watches.settled

    def _facts(self, now: float) -> Facts:
        known, observed = self._refresher.facts, self._observed
        observed.leases = self._watches.leases()
        operator = _operator(known.operator, observed.leases, now)
        if operator != known.operator:
            observed.mark_workloads()
        return Facts(self._watches.connection(now), operator, observed.topologies, self._watches.unread())

    async def _read_version(self) -> None:
        with suppress(KubeError):
            version = await server_version(self._client)
            self._refresher.source = replace(self.source, server_version=version)

    async def state(self) -> ClusterState:
        """All objects that the placement solver reads. Callers share what was read a moment ago. Raises
        KubeError."""
        reading = self._reading
        if reading is None or (reading.done() and _is_outdated(reading)):
            reading = self._reading = asyncio.create_task(self._read_state())
        return await asyncio.shield(reading)

    async def _read_state(self) -> ClusterState:
        read = partial(read_state, self._client, source=self.source.name)
        kinds = [each for each in self._kinds if each.resource != LEASES]
        inside = [each for each in kinds if each.resource.namespaced and self._namespaces]
        outside = [each for each in kinds if each not in inside]
        parts = (read(inside, each, only=each) for each in self._namespaces)
        found = await asyncio.gather(read(outside, _ELSEWHERE), self._read_leases(), *parts)
        self._log_unread(found)
        return merged_state(found)

    def _log_unread(self, found: Iterable[ClusterState]) -> None:
        """Log what is new of it: viewers who do not see a namespace read no reason."""
        unread = {str(each) for state in found for each in state.unread}
        for line in sorted(unread - self._unread):
            log.warning("not read", key="dashboard", action="explain without it", reason=line)
        self._unread = unread

    async def _read_leases(self) -> ClusterState:
        """The Leases of operators. If their namespace is known, those are all that count: users can create
        others of that name in their namespaces."""
        kinds, place = [each for each in self._kinds if each.resource == LEASES], self._lease_namespace
        found = await read_state(self._client, kinds, place or _ELSEWHERE, only=place)
        if place:
            found = replace(found, kinds={LEASES: replace(found.kind(LEASES), namespace="")})
        return found

    async def events(self, namespace: str) -> Sequence[Event]:
        """The events of a namespace. Callers share what was read a moment ago. Raises ApiError."""
        return await self._events.get(namespace)

    async def _read_events(self, namespace: str) -> Sequence[Event]:
        return (await self._client.list(EVENTS, as_type=Event, namespace=namespace)).items

    async def read(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        """One object as the API server has it. Raises ApiError."""
        place = namespace or None
        return await self._client.get(resource, name, as_type=dict[str, Any], namespace=place)


def _operator(known: OperatorView | None, leases: Iterable[Any] | None, now: float) -> OperatorView | None:
    """The view of the operator. As long as the same one leads, renewals do not count."""
    if leases is None:
        return None
    found = operator_view(leases, now)
    if known is None or not found.alive:
        same = known is not None and known.renewed == found.renewed and not known.alive
        return known if same else found
    return known if (known.alive, known.lease, known.holder) == (True, found.lease, found.holder) else found


def _is_outdated(reading: asyncio.Task[ClusterState]) -> bool:
    if reading.cancelled() or reading.exception() is not None:
        return True
    return time.time() - reading.result().taken_at > timing.DASHBOARD_STATE_AGE


@asynccontextmanager
async def live_board(
    client: Client,
    *,
    namespaces: Sequence[str] = (),
    nodes: bool = True,
    lease: str = OPERATOR_LEASE,
    source: str = "",
) -> AsyncIterator[LiveBoard]:
    """The board of a cluster, until the block is left. `namespaces`: the only ones to watch, where the user
    has no rights in others. `nodes`: whether nodes and all pods are watched. `lease`: the name of the Lease
    of operators, in all namespaces, or in the one before a slash. `source`: the URL of the API server, for
    people."""
    board = LiveBoard(client, namespaces, nodes and not namespaces, lease, source)
    async with board.running():
        yield board
