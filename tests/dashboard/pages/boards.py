"""A board over one state of a cluster, which a test can change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grove.cluster_state.model import ClusterState
from grove.dashboard.state.snapshot import SnapshotBoard
from grove.explanation.events import Event
from grove.kube.client.resource import Resource
from grove.kube.errors import KubeError


class StateBoard(SnapshotBoard):
    """A snapshot with events; `problem`: what reading the cluster again raises. Must be created in a running
    event loop."""

    def __init__(
        self, state: ClusterState, events: Sequence[Event] = (), problem: KubeError | None = None
    ) -> None:
        super().__init__(state)
        self.found, self.happened, self.problem = state, events, problem
        self.states_read = 0

    async def state(self) -> ClusterState:
        self.states_read += 1
        self._fail()
        return self.found

    async def events(self, namespace: str) -> Sequence[Event]:
        self._fail()
        return [each for each in self.happened if each.metadata.namespace == namespace]

    async def read(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        self._fail()
        return await super().read(resource, namespace, name)

    def _fail(self) -> None:
        if self.problem is not None:
            raise self.problem
