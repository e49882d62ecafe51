"""Where commands read the state of a cluster from: its API server, or a file of `grove snapshot`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from grove.cli.printable import printable
from grove.cluster_state.model import ClusterState, ReadKind, UnreadKind, unread_lines
from grove.cluster_state.reading import read_state
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.client.client import Client
from grove.kube.client.resource import NODES, PODS

_DEFAULT_NAMESPACE = "default"
_LARGE = (ReadKind(NODES), ReadKind(PODS))


class HasKinds(Protocol):
    """What a command prepares while the cluster is read."""

    @property
    def kinds(self) -> Iterable[ReadKind]:
        """What it reads."""
        ...


Prepared = TypeVar("Prepared", bound=HasKinds)


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
        return self.connection().namespace if self.snapshot is None else _DEFAULT_NAMESPACE

    async def read(
        self, prepare: Callable[[], Prepared], namespace: str | None = None
    ) -> tuple[Prepared, ClusterState]:
        """What the command has prepared, and the objects of its kinds, nodes and pods among them.
        `namespace`: where objects are read that may not be listed in the whole cluster; default: that of the
        context. Raises KubeError.

        `prepare` imports what the command needs. That takes as long as the server needs for the pods of a
        large cluster, so both happen at the same time."""
        if self.snapshot is not None:
            from grove.cluster_state.snapshot_file import read_file

            return prepare(), read_file(self.snapshot)
        connection = self.connection()
        place, source = namespace or connection.namespace, connection.server
        async with Client(connection) as client:
            reading = asyncio.create_task(read_state(client, _LARGE, place, source=source))
            try:
                prepared = await asyncio.to_thread(prepare)
                small = [kind for kind in prepared.kinds if kind not in _LARGE]
                large, rest = await asyncio.gather(reading, read_state(client, small, place, source=source))
            finally:
                reading.cancel()
        return prepared, replace(large, kinds={**large.kinds, **rest.kinds})


def report_unread(state: ClusterState, more: Iterable[UnreadKind] = ()) -> None:
    """Say on stderr what could not be read."""
    for line in unread_lines((*state.unread, *more)):
        sys.stderr.write(printable(f"grove: not seen: {line}") + "\n")
