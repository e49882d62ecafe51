"""Leader election between two processes: failover, fencing, release, and leases that others change."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CONFIG_MAPS, LEASES
from grove.kube.client.transport import HttpTransport, Request, Response, Stream
from grove.kube.errors import ConnectError
from grove.kube.leader.elector import Elector
from grove.kube.leader.leadership import FencedTransport, LeadershipLost
from grove.kube.leader.lease import Lease, LeaseClient
from grove.kube.testing.faults import FaultyTransport
from grove.local.cluster.lifecycle import LocalCluster, down
from tests.cluster.kube.leader_candidate import LONG_LEASE, TIMING
from tests.clusters import Clusters

pytestmark = pytest.mark.cluster

LATEST = 6 * TIMING.lease_duration  # a later election has another cause than the end of the lease
ROOT = Path(__file__).parents[3]


class Replica:
    """A candidate process and its output."""

    def __init__(self, identity: str, process: asyncio.subprocess.Process) -> None:
        self.identity = identity
        self.process = process

    async def wait_for_line(self, start: str) -> str:
        """The next line with this start."""
        assert self.process.stdout is not None
        async with asyncio.timeout(120):
            async for line in self.process.stdout:
                if line.decode().startswith(start):
                    return line.decode().strip()
        raise AssertionError(f"{self.identity} ended without printing {start!r}")

    def signal(self, number: signal.Signals) -> float:
        self.process.send_signal(number)
        return time.monotonic()


@asynccontextmanager
async def replica(
    cluster: LocalCluster, namespace: str, identity: str, timing: str = ""
) -> AsyncIterator[Replica]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.cluster.kube.leader_candidate",
        str(cluster.kubeconfig),
        namespace,
        identity,
        timing,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield Replica(identity, process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def pair(
    cluster: LocalCluster, namespace: str, timing: str = ""
) -> AsyncIterator[tuple[Replica, Replica]]:
    """A leader that writes, and a follower."""
    async with replica(cluster, namespace, "first", timing) as leader:
        await leader.wait_for_line("wrote 0")
        async with replica(cluster, namespace, "second", timing) as follower:
            await follower.wait_for_line("following")
            yield leader, follower


async def versions(client: Client, namespace: str, writer: str) -> list[int]:
    listing = await client.list(CONFIG_MAPS, as_type=Object, namespace=namespace, labels={"writer": writer})
    return sorted(int(item.metadata.resource_version) for item in listing.items)


async def check_one_after_the_other(client: Client, namespace: str) -> None:
    """In the server's order, the first candidate wrote nothing after the first write of the second."""
    first, second = await versions(client, namespace, "first"), await versions(client, namespace, "second")
    assert first
    assert second
    assert first[-1] < second[0]


async def test_killed_leader_is_replaced_after_lease_expires(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    async with pair(cluster, namespace) as (leader, follower):
        killed = leader.signal(signal.SIGKILL)
        await follower.wait_for_line("elected")
        assert time.monotonic() - killed < LATEST
        await follower.wait_for_line("wrote 0")
        await check_one_after_the_other(client, namespace)


async def test_lease_older_than_api_server_is_watched(clusters: Clusters) -> None:
    """A restarted API server sends no events from before its start, and the lease is older."""
    first = await clusters.start("renewed")
    async with Client(config.load(first.kubeconfig)) as client:
        lease_client = LeaseClient(client, "default", "election", request_timeout=120.0)
        await lease_client.write(None, {"holderIdentity": "other", "leaseDurationSeconds": 1})
        body = {"metadata": {"name": "later"}}
        await client.create(CONFIG_MAPS, body, namespace="default", as_type=Object)
    await asyncio.to_thread(down, first.state)
    again = await clusters.start("renewed")
    with capture_logs() as logs:
        async with (
            asyncio.timeout(300),
            Client(config.load(again.kubeconfig)) as client,
            Elector(client, "default", "election", "candidate", timing=TIMING).lead() as leadership,
        ):
            assert leadership.held
    assert [line for line in logs if line["event"] == "lease cannot be read"] == []


async def test_stopped_leader_is_replaced_and_writes_no_more(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    async with pair(cluster, namespace) as (leader, follower):
        stopped = leader.signal(signal.SIGUSR1)
        await follower.wait_for_line("elected")
        assert time.monotonic() - stopped < LATEST
        await follower.wait_for_line("wrote 0")
        leader.signal(signal.SIGCONT)
        assert "renewed in time" in await leader.wait_for_line("lost")
        await leader.wait_for_line("bye")
        await check_one_after_the_other(client, namespace)
        lease = await client.get(LEASES, "election", namespace=namespace, as_type=Lease)
        assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("second", 1)


async def test_leader_shutdown_hands_over_at_once(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    async with pair(cluster, namespace, "long") as (leader, follower):
        leader.signal(signal.SIGTERM)
        await follower.wait_for_line("elected")
        await leader.wait_for_line("bye")
        await follower.wait_for_line("wrote 0")
        await check_one_after_the_other(client, namespace)


class DisconnectableTransport:
    """A transport whose requests can be made to fail."""

    def __init__(self, inner: HttpTransport) -> None:
        self.inner = inner
        self.close = inner.close
        self.disconnected = False
        self.writes_tried = 0
        self.watching = asyncio.Event()

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        self.watching.set()
        return self.inner.stream(request)

    async def send(self, request: Request) -> Response:
        if self.disconnected:
            self.writes_tried += request.is_write and request.resource != LEASES.label
            raise ConnectError("disconnected")
        return await self.inner.send(request)


async def test_disconnected_leader_loses_leadership(cluster: LocalCluster, namespace: str) -> None:
    transport = DisconnectableTransport(HttpTransport(config.load(cluster.kubeconfig)))
    async with Client(transport) as client:
        elector = Elector(client, namespace, "election", "cut-off", timing=TIMING)
        async with elector.lead() as leadership:
            fenced = Client(FencedTransport(transport, leadership, TIMING.longest_write))
            body = {"metadata": {"name": "before"}}
            await fenced.create(CONFIG_MAPS, body, namespace=namespace, as_type=Object)
            transport.disconnected = True
            assert "renewed in time" in await leadership.ended()
            with pytest.raises(LeadershipLost):
                await fenced.create(CONFIG_MAPS, body, namespace=namespace, as_type=Object)
            assert transport.writes_tried == 0


async def test_leader_stops_when_lease_has_other_holder(client: Client, namespace: str) -> None:
    elector = Elector(client, namespace, "election", "robbed", timing=LONG_LEASE)
    async with elector.lead() as leadership:
        takeover = {"spec": {"holderIdentity": "robber"}}
        await client.patch(LEASES, "election", takeover, namespace=namespace, as_type=Lease)
        assert await leadership.ended() == "robber holds the lease"
    lease = await client.get(LEASES, "election", namespace=namespace, as_type=Lease)
    assert lease.spec.holder_identity == "robber"  # a lease of another holder is not released


async def test_stale_follower_cannot_acquire_renewed_lease(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    stalled = FaultyTransport(client.transport)
    first_write = FirstWrite(stalled)
    leader = Elector(client, namespace, "election", "leader", timing=TIMING)
    follower = Elector(Client(first_write), namespace, "election", "follower", timing=TIMING)
    async with leader.lead() as leadership:
        stalled.pause_watch(LEASES.label)
        following = asyncio.create_task(follower.lead().__aenter__())
        async with asyncio.timeout(120):
            assert await first_write.answer == 409
        assert leadership.held
        assert not following.done()
        following.cancel()
        await asyncio.wait({following})


class FirstWrite:
    """A transport that records the status of the first write."""

    def __init__(self, inner: FaultyTransport) -> None:
        self.inner = inner
        self.stream = inner.stream
        self.close = inner.close
        self.answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def send(self, request: Request) -> Response:
        response = await self.inner.send(request)
        if request.is_write and not self.answer.done():
            self.answer.set_result(response.status)
        return response


async def test_deleted_lease_stays_with_its_holder(cluster: LocalCluster, namespace: str) -> None:
    transport = DisconnectableTransport(HttpTransport(config.load(cluster.kubeconfig)))
    async with Client(transport) as client:
        holder = Elector(client, namespace, "election", "holder", timing=LONG_LEASE)
        rival = Elector(client, namespace, "election", "rival", timing=LONG_LEASE)
        async with holder.lead() as leadership:
            following = asyncio.create_task(rival.lead().__aenter__())
            await transport.watching.wait()
            await client.delete(LEASES, "election", namespace=namespace, as_type=Lease)
            assert await next_holder(client, namespace) == "holder"
            assert leadership.held
            assert not following.done()
            following.cancel()
            await asyncio.wait({following})


async def next_holder(client: Client, namespace: str) -> str | None:
    lease_client = LeaseClient(client, namespace, "election", request_timeout=120.0)
    async with asyncio.timeout(120), aclosing(lease_client.changes()) as changes:
        async for lease in changes:
            if lease is not None:
                return lease.spec.holder_identity
    return None
