"""The measurements of a peer, on a fresh control plane: floors, then what any operator of the API does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.control_plane import control_plane, until_garbage_collected
from bench.core import floors, more_measurements, updates_and_restarts
from bench.core.measure import NODES, SHAPE, start_and_deletion
from bench.core.setup import OperatorUnderTest
from bench.peer import install, manifests, process
from bench.peer.command import Command, parse
from bench.peer.errors import PeerError
from bench.peer.manifests import Manifests
from bench.peer.probe import wait_until_reconciling
from grove.kube.client.client import Client
from grove.kube.errors import KubeError
from grove.local.cluster.lifecycle import LocalCluster

Result = dict[str, Any]
Measurement = Callable[[Client, LocalCluster], Awaitable[Result]]
FLOORS = ("pod_floor", "floor")


class Peer(NamedTuple):
    """An operator to compare with."""

    command: Command
    manifests: Manifests


def read(command: str, folder: str) -> Peer:
    """Check the command and the manifests, before any control plane starts. Raises PeerError."""
    if not folder:
        raise PeerError("PEER needs PEER_DIR: give the directory with the operator's CRDs and webhooks")
    return Peer(parse(command), manifests.read(Path(folder)))


async def measure(peer: Peer, only: Collection[str], replicas: int) -> Result:
    """The floors and the peer, keys as in our own results, but `operator` for `ours`. Raises PeerError."""
    result: Result = {"command": peer.command.name}
    async with control_plane(NODES, SHAPE) as (client, cluster):
        await _install(client, peer.manifests)
        for name, measurement in _measurements(peer, client, replicas).items():
            if name == "ours":  # floors have no operator that could serve webhooks
                await install.apply(client, peer.manifests.webhooks)
            if not only or name in only:
                key = "operator" if name == "ours" else name
                result[key] = await _measured(name, measurement, client, cluster)
    return result


def _measurements(peer: Peer, client: Client, replicas: int) -> Mapping[str, Measurement]:
    """What any operator of the API can do; names as in our own measurements."""
    tested = OperatorUnderTest(process.USER, partial(_running, peer.command, client))
    return {
        "pod_floor": partial(floors.pods, replicas=replicas),
        "floor": partial(floors.contract, replicas=replicas, halved=True),
        "ours": partial(start_and_deletion, replicas=replicas, tested=tested),
        "small": partial(more_measurements.small, tested=tested),
        "updated": partial(updates_and_restarts.updated, tested=tested),
    }


async def _install(client: Client, found: Manifests) -> None:
    """Install everything but the webhooks, which are only checked: they would refuse what floors write."""
    await install.apply_crds(client, found.crds)
    await until_garbage_collected(client)
    await install.apply(client, found.others)
    await install.apply(client, found.webhooks, dry_run=True)


@asynccontextmanager
async def _running(command: Command, client: Client, cluster: LocalCluster) -> AsyncIterator[int]:
    """The peer, once it reconciles."""
    async with process.running(command, cluster) as pid:
        try:
            await wait_until_reconciling(client)
        except PeerError as error:
            lines = process.last_lines(cluster)
            raise PeerError(f"the peer {command.name} does not reconcile: {error}{lines}") from None
        yield pid


async def _measured(name: str, measurement: Measurement, client: Client, cluster: LocalCluster) -> Result:
    try:
        return await measurement(client, cluster)
    except TimeoutError:
        if name in FLOORS:
            raise
        problem = f"the peer did not complete the measurement {name} in time"
    except ProcessLookupError:
        problem = f"the peer exited during the measurement {name}"
    except KubeError as error:
        problem = f"the measurement {name} of the peer failed: {error}"
    raise PeerError(f"{problem}: correct the peer, or measure others by name{process.last_lines(cluster)}")
