"""Two replicas, two processes, one leader: whatever happens to it, the other takes over in time and alone."""

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
from tests.cluster.kube.leader_candidate import SLOW_BACKOFF, TIMING
from tests.clusters import Clusters

pytestmark = pytest.mark.cluster

LATEST = 6 * TIMING.lease_duration  # who takes over later has not waited for the lease but for something else
ROOT = Path(__file__).parents[3]


class Replica:
    """A candidate process and what it says."""

    def __init__(self, identity: str, process: asyncio.subprocess.Process) -> None:
        self.identity = identity
        self.process = process

    async def hear(self, words: str) -> str:
        """The next line that begins with the words."""
        assert self.process.stdout is not None
        async with asyncio.timeout(120):
            async for line in self.process.stdout:
                if line.decode().startswith(words):
                    return line.decode().strip()
        raise AssertionError(f"{self.identity} ended without saying {words!r}")

    def signal(self, number: signal.Signals) -> float:
        self.process.send_signal(number)
        return time.monotonic()


@asynccontextmanager
async def replica(
    cluster: LocalCluster, namespace: str, identity: str, request_timeout: str = ""
) -> AsyncIterator[Replica]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.cluster.kube.leader_candidate",
        str(cluster.kubeconfig),
        namespace,
        identity,
        request_timeout,
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
    cluster: LocalCluster, namespace: str, request_timeout: str = ""
) -> AsyncIterator[tuple[Replica, Replica]]:
    """A leader that writes, and a follower."""
    async with replica(cluster, namespace, "first", request_timeout) as leader:
        await leader.hear("wrote 0")
        async with replica(cluster, namespace, "second", request_timeout) as follower:
            await follower.hear("following")
            yield leader, follower


async def versions(client: Client, namespace: str, writer: str) -> list[int]:
    listing = await client.list(CONFIG_MAPS, as_type=Object, namespace=namespace, labels={"writer": writer})
    return sorted(int(item.metadata.resource_version) for item in listing.items)


async def check_one_after_the_other(client: Client, namespace: str) -> None:
    """By the server's own order, the first wrote nothing after the second had begun."""
    first, second = await versions(client, namespace, "first"), await versions(client, namespace, "second")
    assert first
    assert second
    assert first[-1] < second[0]


async def test_a_killed_leader_is_replaced_when_its_lease_runs_out(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    async with pair(cluster, namespace) as (leader, follower):
        killed = leader.signal(signal.SIGKILL)
        await follower.hear("elected")
        assert time.monotonic() - killed < LATEST
        await follower.hear("wrote 0")
        await check_one_after_the_other(client, namespace)


async def test_a_lease_from_before_the_api_server_is_watched_like_any_other(clusters: Clusters) -> None:
    """An API server that was started again tells nothing of what came before it, and the lease did."""
    first = await clusters.start("renewed")
    async with Client(config.load(first.kubeconfig)) as client:
        desk = LeaseClient(client, "default", "election", request_timeout=120.0)
        await desk.write(None, {"holderIdentity": "somebody", "leaseDurationSeconds": 1})
        body = {"metadata": {"name": "later"}}
        await client.create(CONFIG_MAPS, body, namespace="default", as_type=Object)
    await asyncio.to_thread(down, first.state)
    again = await clusters.start("renewed")
    with capture_logs() as said:
        async with (
            asyncio.timeout(300),
            Client(config.load(again.kubeconfig)) as client,
            Elector(client, "default", "election", "us", timing=TIMING).lead() as leadership,
        ):
            assert leadership.held
    assert [line for line in said if line["event"] == "lease cannot be read"] == []


async def test_a_stopped_leader_is_replaced_and_writes_nothing_when_it_wakes_up(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    async with pair(cluster, namespace) as (leader, follower):
        stopped = leader.signal(signal.SIGUSR1)
        await follower.hear("elected")
        assert time.monotonic() - stopped < LATEST
        await follower.hear("wrote 0")
        leader.signal(signal.SIGCONT)
        assert "renewed in time" in await leader.hear("lost")
        await leader.hear("bye")
        await check_one_after_the_other(client, namespace)
        lease = await client.get(LEASES, "election", namespace=namespace, as_type=Lease)
        assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("second", 1)


async def test_a_leader_that_shuts_down_hands_over_at_once(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    async with pair(cluster, namespace, "patient") as (leader, follower):
        leader.signal(signal.SIGTERM)
        await follower.hear("elected")
        await leader.hear("bye")
        await follower.hear("wrote 0")
        await check_one_after_the_other(client, namespace)


class Severable:
    """A transport whose cable can be pulled."""

    def __init__(self, inner: HttpTransport) -> None:
        self.inner = inner
        self.close = inner.close
        self.severed = False
        self.writes_tried = 0
        self.watching = asyncio.Event()

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        self.watching.set()
        return self.inner.stream(request)

    async def send(self, request: Request) -> Response:
        if self.severed:
            self.writes_tried += request.is_write and request.resource != LEASES.label
            raise ConnectError("the cable is pulled")
        return await self.inner.send(request)


async def test_a_leader_without_a_connection_loses_leadership_by_itself(
    cluster: LocalCluster, namespace: str
) -> None:
    transport = Severable(HttpTransport(config.load(cluster.kubeconfig)))
    async with Client(transport) as client:
        elector = Elector(client, namespace, "election", "cut-off", timing=TIMING)
        async with elector.lead() as leadership:
            fenced = Client(FencedTransport(transport, leadership, TIMING.longest_write))
            body = {"metadata": {"name": "before"}}
            await fenced.create(CONFIG_MAPS, body, namespace=namespace, as_type=Object)
            transport.severed = True
            assert "renewed in time" in await leadership.ended()
            with pytest.raises(LeadershipLost):
                await fenced.create(CONFIG_MAPS, body, namespace=namespace, as_type=Object)
            assert transport.writes_tried == 0


async def test_a_leader_whose_lease_was_taken_stops_at_the_next_renewal(
    client: Client, namespace: str
) -> None:
    elector = Elector(client, namespace, "election", "robbed", timing=SLOW_BACKOFF)
    async with elector.lead() as leadership:
        theft = {"spec": {"holderIdentity": "robber"}}
        await client.patch(LEASES, "election", theft, namespace=namespace, as_type=Lease)
        assert await leadership.ended() == "robber holds the lease"
    lease = await client.get(LEASES, "election", namespace=namespace, as_type=Lease)
    assert lease.spec.holder_identity == "robber"  # what is not ours is not released


async def test_a_follower_whose_view_has_stalled_cannot_take_a_lease_that_was_renewed(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    stalled = FaultyTransport(client.transport)
    tried = Tried(stalled)
    leader = Elector(client, namespace, "election", "leader", timing=TIMING)
    follower = Elector(Client(tried), namespace, "election", "follower", timing=TIMING)
    async with leader.lead() as leadership:
        stalled.pause_watch(LEASES.label)
        following = asyncio.create_task(follower.lead().__aenter__())
        async with asyncio.timeout(120):
            assert await tried.answer == 409
        assert leadership.held
        assert not following.done()
        following.cancel()
        await asyncio.wait({following})


class Tried:
    """A transport that tells how the first write of a lease was answered."""

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


async def test_a_deleted_lease_is_not_taken_from_under_its_holder(
    cluster: LocalCluster, namespace: str
) -> None:
    transport = Severable(HttpTransport(config.load(cluster.kubeconfig)))
    async with Client(transport) as client:
        holder = Elector(client, namespace, "election", "holder", timing=SLOW_BACKOFF)
        rival = Elector(client, namespace, "election", "rival", timing=SLOW_BACKOFF)
        async with holder.lead() as leadership:
            following = asyncio.create_task(rival.lead().__aenter__())
            await transport.watching.wait()
            await client.delete(LEASES, "election", namespace=namespace, as_type=Lease)
            assert await holder_of_the_next_lease(client, namespace) == "holder"
            assert leadership.held
            assert not following.done()
            following.cancel()
            await asyncio.wait({following})


async def holder_of_the_next_lease(client: Client, namespace: str) -> str | None:
    desk = LeaseClient(client, namespace, "election", request_timeout=120.0)
    async with asyncio.timeout(120), aclosing(desk.changes()) as changes:
        async for lease in changes:
            if lease is not None:
                return lease.spec.holder_identity
    return None
