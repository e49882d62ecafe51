"""Set-up of the measurements: the operator as a separate process, namespaces, sets."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bench.core.process_cost import OPERATOR
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.cluster.pki import Pki, sign_client, write_kubeconfig
from grove.operator.caches.resources import resource_of

SETS = resource_of(PodCliqueSet.KIND)
CLIQUES, GANGS = resource_of(PodClique.KIND), resource_of(PodGang.KIND)


@asynccontextmanager
async def operator(cluster: LocalCluster, **placement: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The operator, as a user of its own. `placement`: keys of the configuration of the default scheduler."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.core.operator",
        str(credentials(cluster, OPERATOR)),
        json.dumps(placement),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


def credentials(cluster: LocalCluster, user: str) -> Path:
    """A kubeconfig with a certificate for a user, which identifies its requests in the audit log. Not by
    impersonation: some clients ignore it, and the API server authorizes each such request once more."""
    pki = Pki(cluster.state.pki)
    sign_client(pki, user, datetime.now(UTC), group="system:masters")
    path = cluster.state.config(f"{user}.kubeconfig")
    write_kubeconfig(pki, user, cluster.server, path)
    return path


class OperatorUnderTest(NamedTuple):
    """An operator that is measured: what starts it, and the user of its requests in the audit log."""

    user: str
    running: Callable[[LocalCluster], AbstractAsyncContextManager[int]]
    """Starts it, yields the id of its process once it reconciles sets, and stops it."""


@asynccontextmanager
async def _ours(cluster: LocalCluster) -> AsyncIterator[int]:
    async with operator(cluster) as process:
        yield process.pid


OURS = OperatorUnderTest(OPERATOR, _ours)


async def new_namespace(client: Client, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(NAMESPACES, body, as_type=Object)


def template(name: str, replicas: int) -> dict[str, Any]:
    """The set of a YAML file in this folder, with a number of replicas."""
    body: dict[str, Any] = yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text())
    body["spec"]["replicas"] = replicas
    return body
