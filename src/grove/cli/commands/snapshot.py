"""`grove snapshot`: writes the state of the cluster to stdout, for `--snapshot` of other commands."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

from cyclopts import Parameter

from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cli import options
from grove.cli.printable import printable
from grove.cluster_state.kinds import kinds_of
from grove.cluster_state.model import ClusterState, unread_lines
from grove.cluster_state.operator_setup import new_caches, operator_setup
from grove.cluster_state.reading import read_state
from grove.cluster_state.snapshot_file import encode
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.client.client import Client


def snapshot(
    *,
    namespace: Annotated[
        str | None, Parameter(alias="-n", help="Read the objects of this namespace only; default: of all.")
    ] = None,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Write the state of the cluster as JSON: nodes, pods, workloads, topologies, devices and volumes.

    It contains no Secrets and no values of environment variables. `grove plan`, `grove explain`, `grove
    topology` and `grove dashboard` read it with `--snapshot FILE`.
    """
    connection = config.load(kubeconfig, context)
    state = asyncio.run(read(connection, namespace or ""))
    sys.stdout.buffer.write(encode(state))
    sys.stdout.buffer.flush()
    for line in unread_lines(state.unread):
        sys.stderr.write(printable(f"grove: not in the snapshot: {line}") + "\n")
    return 0


async def read(connection: Config, only: str = "") -> ClusterState:
    """The state of the cluster of a connection."""
    kinds = kinds_of(new_caches(operator_setup()), OPERATOR_LEASE)
    async with Client(connection) as client:
        return await read_state(client, kinds, connection.namespace, only=only, source=connection.server)
