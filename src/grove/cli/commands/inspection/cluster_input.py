"""Where commands read the state of a cluster from: its API server, or a file of `grove snapshot`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from grove.cluster_state.kinds import ReadKind
from grove.cluster_state.model import ClusterState, UnreadKind
from grove.cluster_state.reading import read_state
from grove.cluster_state.snapshot_file import read_file
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.client.client import Client

DEFAULT_NAMESPACE = "default"
SnapshotOption = Annotated[
    Path | None, Parameter(help="A file of grove snapshot, to be read instead of the cluster.")
]


class ClusterInput(Struct, frozen=True):
    """A snapshot file, or the cluster of a kubeconfig."""

    snapshot: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None

    def connection(self) -> Config:
        """The connection to the cluster. Raises ConfigError."""
        return config.load(self.kubeconfig, self.context)

    @property
    def namespace(self) -> str:
        """The namespace of the context; that of a snapshot is not known."""
        return self.connection().namespace if self.snapshot is None else DEFAULT_NAMESPACE

    async def read(self, kinds: Iterable[ReadKind], namespace: str | None = None) -> ClusterState:
        """The objects of these kinds. `namespace`: where objects are read that may not be listed in the whole
        cluster; default: that of the context. Raises KubeError."""
        if self.snapshot is not None:
            return read_file(self.snapshot)
        connection = self.connection()
        async with Client(connection) as client:
            return await read_state(
                client, kinds, namespace or connection.namespace, source=connection.server
            )


def report_unread(state: ClusterState, more: Iterable[UnreadKind] = ()) -> None:
    """Say on stderr what could not be read."""
    for unread in (*state.unread, *more):
        sys.stderr.write(f"grove: not seen: {unread}\n")
