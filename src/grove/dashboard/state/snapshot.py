"""The board of a snapshot file: nothing changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cluster_state.cache_loading import load_caches
from grove.cluster_state.model import ClusterState
from grove.dashboard.model import Source
from grove.dashboard.problems import Problem
from grove.dashboard.state.base import CachedBoard
from grove.dashboard.state.changes import Facts
from grove.dashboard.state.observed import Observed
from grove.dashboard.state.recent_events import RecentEvents
from grove.dashboard.state.refresh import Refresher
from grove.dashboard.state.visibility import Unread
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.events import Event
from grove.explanation.operator_lease import known_leases
from grove.kube.client.decoding import Object
from grove.kube.client.resource import LEASES, NODES, Resource
from grove.kube.errors import ApiStatus, NotFound
from grove.kube.leader.lease import Lease
from grove.plan.timestamps import rfc3339
from grove.views.operator_view import operator_view


class SnapshotBoard(CachedBoard):
    """The state of a cluster in the past. The clock stands at the time of the snapshot, so that ages are
    right. Must be created in a running event loop, as the caches are."""

    def __init__(self, state: ClusterState) -> None:
        observed = Observed(OPERATOR_LEASE, nodes=state.kind(NODES).listed)
        self._state = load_caches(state, observed.caches)
        graphs = state.objects(observed.graphs.resource, DynamoGraphDeployment)
        observed.graphs.replace(graphs, "")
        observed.leases = known_leases(state.kind(LEASES), state.objects(LEASES, Lease))
        name = state.source.rpartition("/")[2]
        taken_at = rfc3339(state.taken_at)
        source = Source(name, live=False, server_version=state.server_version, taken_at=taken_at)
        refresher = Refresher(observed, RecentEvents(), source, clock=lambda: state.taken_at)
        super().__init__(observed, refresher)
        leases = observed.leases
        refresher.refresh(
            Facts(
                operator=operator_view(leases, state.taken_at) if leases is not None else None,
                topologies=observed.topologies,
                unread=Unread(tuple(Problem(each.resource, each.problem) for each in self._state.unread)),
            )
        )

    async def state(self) -> ClusterState:
        """The whole snapshot."""
        return self._state

    async def events(self, _namespace: str) -> Sequence[Event]:
        """Snapshots have no events."""
        return ()

    async def read(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        """One object as the snapshot has it. Raises NotFound."""
        for item in self._state.kind(resource).items:
            meta = msgspec.json.decode(item, type=Object).metadata
            if (meta.namespace, meta.name) == (namespace, name):
                found: dict[str, Any] = msgspec.json.decode(item)
                return found
        where = f"{namespace}/{name}" if namespace else name
        status = ApiStatus(code=404, reason="NotFound", message="the snapshot does not have this object")
        raise NotFound(f"read {resource.label} {where}", status)


def snapshot_board(state: ClusterState) -> SnapshotBoard:
    """The board of a snapshot. Must be called in a running event loop."""
    return SnapshotBoard(state)
