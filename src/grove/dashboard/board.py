"""What the pages of the dashboard are made of: the cluster as it is now, or as a snapshot file has it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Protocol

from grove.api.types.pod import Pod
from grove.cluster_state.model import ClusterState
from grove.dashboard.model import (
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
from grove.explanation.events import Event
from grove.explanation.operator_lease import Leases
from grove.explanation.subtree import Objects
from grove.kube.client.resource import Resource
from grove.operator.caches.cluster_pods import ClusterPod


class Board(Protocol):
    """The state of a cluster for viewers with different rights. Only `picture`, `deltas` and `heartbeat`
    apply rights: the callers of all other methods check them first."""

    @property
    def source(self) -> Source:
        """Where the state comes from."""
        ...

    def picture(self, rights: Rights) -> Picture:
        """Everything that a viewer sees now."""
        ...

    def deltas(self, rights: Rights, since: str) -> AsyncIterator[Delta | None]:
        """What changes after a version of a picture of the same rights, as it changes. None, which is the
        last one: the version is too old, and the picture must be read again."""
        ...

    def heartbeat(self, rights: Rights) -> Heartbeat:
        """Whether the state is current, for a viewer."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether everything is read that can be."""
        ...

    def namespaces(self) -> frozenset[str]:
        """The namespaces that have workloads."""
        ...

    def sets(self) -> Mapping[str, SetSummary]:
        """All sets, by their keys. Not a copy, as all maps here."""
        ...

    def gangs(self) -> Mapping[str, GangSummary]:
        """All gangs, by their keys."""
        ...

    def nodes(self) -> Mapping[str, NodeCells] | None:
        """All nodes; None if they cannot be listed."""
        ...

    def topologies(self) -> tuple[TopologySummary, ...]:
        """All topologies."""
        ...

    def objects(self, namespace: str) -> Objects:
        """The workloads of one namespace."""
        ...

    def pods(self) -> Iterable[Pod]:
        """The pods of the workloads of all namespaces."""
        ...

    def leases(self) -> Leases:
        """The Leases of operators; None if they cannot be listed."""
        ...

    def node_pods(self, node: str) -> Iterable[ClusterPod]:
        """The pods that use a node or are nominated for it."""
        ...

    async def state(self) -> ClusterState:
        """All objects that the placement solver reads, at most a few seconds old."""
        ...

    async def events(self, namespace: str) -> Sequence[Event]:
        """The events of a namespace. Raises ApiError."""
        ...

    async def read(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        """One object as the API server has it. Raises ApiError."""
        ...
