"""Each kind of fault on a real server: cache and server converge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest
from msgspec import Raw

from grove.kube.auth import config
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import CONFIG_MAPS
from grove.kube.client.retry import Backoff, RetryPolicy
from grove.kube.client.transport import HttpTransport
from grove.kube.errors import AlreadyExists, Conflict, InternalError, LostReply, NotFound
from grove.kube.testing.faults import FaultRates, FaultyTransport, ProcessStopped
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.kube.reflector_harness import WatchedCache, config_map, watching

pytestmark = pytest.mark.cluster
NAMES = [f"cm-{number}" for number in range(60)]
MANY_ATTEMPTS = RetryPolicy(attempts=20, backoff=Backoff(first=0.001, longest=0.01))


@pytest.fixture
async def faulty(cluster: LocalCluster) -> AsyncIterator[FaultyTransport]:
    transport = FaultyTransport(HttpTransport(config.load(cluster.kubeconfig)), seed=1)
    yield transport
    await transport.close()


async def churn(client: Client, namespace: str) -> None:
    """Create all objects, change every second, delete every third, each until the outcome is certain."""
    for step, names in ((_create, NAMES), (_change, NAMES[::2]), (_delete, NAMES[::3])):
        await asyncio.gather(*(_until_certain(step, client, namespace, name) for name in names))


async def _create(client: Client, namespace: str, name: str) -> None:
    with suppress(AlreadyExists):
        await client.create(CONFIG_MAPS, config_map(name, "1"), namespace=namespace, as_type=Raw)


async def _change(client: Client, namespace: str, name: str) -> None:
    await client.patch(CONFIG_MAPS, name, {"data": {"v": "2"}}, namespace=namespace, as_type=Raw)


async def _delete(client: Client, namespace: str, name: str) -> None:
    with suppress(NotFound):
        await client.delete(CONFIG_MAPS, name, namespace=namespace, as_type=Object)


async def _until_certain(
    step: Callable[[Client, str, str], Awaitable[None]], client: Client, namespace: str, name: str
) -> None:
    while True:
        try:
            return await step(client, namespace, name)
        except (Conflict, InternalError, LostReply):
            continue


async def until_converged(live: WatchedCache, client: Client, namespace: str) -> None:
    """Wait until the cache has the same objects and versions as the server."""
    listing = await client.list(CONFIG_MAPS, namespace=namespace, as_type=Object)
    expected = {found.metadata.name: found.metadata.resource_version for found in listing.items}
    await live.until(
        lambda: {found.metadata.name: found.metadata.resource_version for found in live.cache} == expected
    )
    assert {f"cm-{number}" for number in range(60) if number % 3} <= expected.keys()


async def create_one_by_one(client: Client, namespace: str) -> None:
    for name in NAMES:
        await _create(client, namespace, name)


@pytest.mark.parametrize("fault", ["delay", "drop", "cut", "duplicate", "reorder"])
async def test_cache_converges_under_watch_faults(
    faulty: FaultyTransport, client: Client, namespace: str, fault: str
) -> None:
    async with watching(Client(faulty), namespace) as live:
        rate = 0.05 if fault in ("drop", "cut") else 0.5
        faulty.rates = FaultRates(**{fault: rate}, longest_delay=0.02)
        await churn(client, namespace)
        await until_converged(live, client, namespace)
        assert faulty.fault_counts[fault] > 0
        assert max(live.new.values()) == 1


@pytest.mark.parametrize("fault", ["conflict", "throttle", "error", "lose"])
async def test_cache_converges_under_write_faults(
    faulty: FaultyTransport, client: Client, namespace: str, fault: str
) -> None:
    faulty.rates = FaultRates(**{fault: 0.3})
    async with watching(client, namespace) as live:
        await churn(Client(faulty, retry=MANY_ATTEMPTS), namespace)
        await until_converged(live, client, namespace)
        assert faulty.fault_counts[fault] > 0


async def test_stopped_process_leaves_exactly_its_writes(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    inner = HttpTransport(config.load(cluster.kubeconfig))
    stopping = Client(FaultyTransport(inner, stop_after_writes=5))
    with pytest.raises(ProcessStopped):
        await create_one_by_one(stopping, namespace)
    await stopping.close()
    left = await client.list(CONFIG_MAPS, namespace=namespace, as_type=Object)
    assert sorted(found.metadata.name for found in left.items if "cm-" in found.metadata.name) == NAMES[:5]
