"""What the boards of a live cluster and of a snapshot have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping

from msgspec.structs import replace

from grove.api.types.pod import Pod
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
)
from grove.dashboard.rights import Rights
from grove.dashboard.state.observed import Observed
from grove.dashboard.state.refresh import Refresher
from grove.dashboard.state.visibility import visible_connection
from grove.explanation.operator_lease import Leases
from grove.explanation.subtree import Objects
from grove.operator.caches.cluster_pods import ClusterPod
from grove.plan.timestamps import rfc3339
from grove.views.operator_view import operator_view


class CachedBoard:
    """The part of a `grove.dashboard.board.Board` that reads caches."""

    def __init__(self, observed: Observed, refresher: Refresher) -> None:
        self._observed, self._refresher = observed, refresher
        self._interruption: Connection | None = None
        """Why the state is not current although the watches are connected."""

    @property
    def source(self) -> Source:
        """Where the state comes from."""
        return self._refresher.source

    def picture(self, rights: Rights) -> Picture:
        """Everything that a viewer sees now."""
        found = self._refresher.picture(self._limited(rights))
        if self._interruption is None:
            return found
        return replace(found, connection=visible_connection(self._interruption, rights))

    def deltas(self, rights: Rights, since: str) -> AsyncIterator[Delta | None]:
        """What changes after a version of a picture of the same rights, as it changes. None, which is the
        last one: the version is too old, and the picture must be read again."""
        return self._refresher.history.deltas(self._limited(rights), since)

    def _limited(self, rights: Rights) -> Rights:
        """The rights of a viewer, without what the board does not have."""
        return rights if self._observed.view is not None else replace(rights, nodes=False)

    def heartbeat(self, rights: Rights) -> Heartbeat:
        """Whether the state is current, for a viewer."""
        now, leases = self._refresher.now, self._observed.leases
        operator = operator_view(leases, now) if leases is not None else None
        connection = self._interruption or self._refresher.facts.connection
        return Heartbeat(rfc3339(now), visible_connection(connection, rights), operator)

    @property
    def is_settled(self) -> bool:
        """Whether everything is read that can be."""
        return True

    def namespaces(self) -> frozenset[str]:
        """The namespaces that have workloads."""
        return self._observed.namespaces()

    def sets(self) -> Mapping[str, SetSummary]:
        """All sets, by their keys."""
        return self._refresher.contents.sets

    def gangs(self) -> Mapping[str, GangSummary]:
        """All gangs, by their keys."""
        return self._refresher.contents.gangs

    def nodes(self) -> Mapping[str, NodeCells] | None:
        """All nodes; None if they cannot be listed."""
        return self._refresher.contents.nodes if self._observed.view is not None else None

    def topologies(self) -> tuple[TopologySummary, ...]:
        """All topologies."""
        return self._refresher.facts.topologies

    def objects(self, namespace: str) -> Objects:
        """The workloads of one namespace."""
        return self._observed.objects(namespace)

    def pods(self) -> Iterable[Pod]:
        """The pods of the workloads of all namespaces."""
        return self._observed.caches.pods

    def leases(self) -> Leases:
        """The Leases of operators; None if they are not known."""
        return self._observed.leases

    def node_pods(self, node: str) -> Iterable[ClusterPod]:
        """The pods that use a node or are nominated for it."""
        return self._observed.node_pods(node)
