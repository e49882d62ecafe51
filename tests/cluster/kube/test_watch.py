"""Cache and reflector on a real API server: cut connections, restarts and compaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from msgspec import Raw

from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.auth.credentials import StaticCredentials
from grove.kube.auth.secret_source import FileSource
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import CONFIG_MAPS, NAMESPACES
from grove.kube.client.transport import HttpTransport
from grove.kube.metrics import watch_restarts_total
from grove.kube.testing.faults import FaultyTransport
from grove.local.cluster import lifecycle as local
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.kube.reflector_harness import (
    ConfigMap,
    config_map,
    create_many,
    delete_many,
    watching,
    wired,
)
from tests.clusters import Clusters

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "paged"])
async def test_cache_has_existing_objects_and_changes(
    client: Client, namespace: str, streaming: bool
) -> None:
    await create_many(client, namespace, ["a", "b"], "1")
    async with watching(client, namespace, streaming=streaming) as live:
        assert {"a": "1", "b": "1"}.items() <= live.data().items()
        await client.patch(CONFIG_MAPS, "a", {"data": {"v": "2"}}, namespace=namespace, as_type=Raw)
        await client.delete(CONFIG_MAPS, "b", namespace=namespace, as_type=Object)
        await live.until(lambda: live.data().get("a") == "2" and "b" not in live.data())


async def test_label_selector_limits_the_watch(client: Client, namespace: str) -> None:
    async with watching(client, namespace, labels="pick=me") as live:
        await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace, as_type=Raw)
        await client.create(CONFIG_MAPS, config_map("b", pick="me"), namespace=namespace, as_type=Raw)
        await live.until(lambda: live.data() == {"b": ""})
        unpick = {"metadata": {"labels": {"pick": None}}}
        reply = await client.patch(CONFIG_MAPS, "b", unpick, namespace=namespace, as_type=ConfigMap)
        live.cache.apply_reply(reply)
        assert live.data() == {}
        await client.create(CONFIG_MAPS, config_map("c", pick="me"), namespace=namespace, as_type=Raw)
        await live.until(lambda: live.data() == {"c": ""})


async def test_own_writes_are_cached_before_watch_events(client: Client, namespace: str) -> None:
    faulty = FaultyTransport(client.transport)
    async with watching(Client(faulty), namespace) as live:
        faulty.pause_watch("configmaps")
        created = await client.create(
            CONFIG_MAPS, config_map("a", "1"), namespace=namespace, as_type=ConfigMap
        )
        live.cache.apply_reply(created)
        changed = await client.patch(
            CONFIG_MAPS, "a", {"data": {"v": "2"}}, namespace=namespace, as_type=ConfigMap
        )
        live.cache.apply_reply(changed)
        assert live.data()["a"] == "2"
        gone = await client.delete(CONFIG_MAPS, "a", namespace=namespace, as_type=ConfigMap)
        live.cache.apply_delete_reply(namespace, "a", created.metadata.uid, gone)
        assert "a" not in live.data()
        marker = asyncio.create_task(live.until(lambda: "marker" in live.data()))
        await client.create(CONFIG_MAPS, config_map("marker"), namespace=namespace, as_type=Raw)
        faulty.resume_watch("configmaps")
        await marker
        assert "a" not in live.data()
        assert (live.new["a"], live.gone["a"]) == (1, 1), "the delayed events do not add the object again"


async def test_cut_connection_loses_and_repeats_no_event(cluster: LocalCluster, namespace: str) -> None:
    """5,000 objects while the connection is cut repeatedly."""
    names = [f"cm-{number}" for number in range(5000)]
    async with (
        wired(cluster) as (wire, over_wire),
        Client(over_wire) as far,
        Client(config.load(cluster.kubeconfig)) as near,
        watching(far, namespace) as live,
    ):
        creating = asyncio.create_task(create_many(near, namespace, names))
        for part in range(1, 5):
            await live.until(lambda part=part: len(live.cache) > part * 1000)  # type: ignore[misc]
            wire.cut()
        await creating
        await live.until(lambda: set(names) <= live.data().keys())
        assert set(live.new.values()) == {1}, "each object is added once"
        assert not live.gone
        await delete_many(near, namespace, names)
        await live.until(lambda: not set(names) & live.data().keys())
        assert {live.gone[name] for name in names} == {1}


async def test_slow_watch_consumer_catches_up(cluster: LocalCluster, namespace: str) -> None:
    """More events than all buffers can contain wait behind a paused watch; the server may end the watch."""
    names = [f"cm-{number}" for number in range(1500)]
    async with Client(config.load(cluster.kubeconfig)) as near:
        faulty = FaultyTransport(HttpTransport(config.load(cluster.kubeconfig)))
        async with Client(faulty) as slow, watching(slow, namespace) as live:
            faulty.pause_watch("configmaps")
            await create_many(near, namespace, names, "x" * 20_000)
            await near.delete(CONFIG_MAPS, "cm-0", namespace=namespace, as_type=Object)
            assert not any(name in live.data() for name in names)
            faulty.resume_watch("configmaps")
            await live.until(lambda: set(names[1:]) <= live.data().keys() and "cm-0" not in live.data())
            assert max(live.new.values()) == 1


async def test_watch_resumes_after_api_server_restart(clusters: Clusters) -> None:
    own = await clusters.start("restart")
    async with wired(own) as (wire, over_wire), Client(over_wire) as far, watching(far, "default") as live:
        async with Client(config.load(own.kubeconfig)) as near:
            await create_many(near, "default", ["before"])
            await live.until(lambda: "before" in live.data())
        await asyncio.to_thread(local.stop_components, own.state, ("kube-apiserver",))
        again = await clusters.start("restart")
        wire.lead_to(again.server)
        async with Client(config.load(again.kubeconfig)) as near:
            await create_many(near, "default", ["after"])
            await live.until(lambda: "after" in live.data())
        assert live.new["before"] == 1
        assert not live.gone
        assert not live.changed


@asynccontextmanager
async def etcd(own: LocalCluster) -> AsyncIterator[Client]:
    """A client of etcd's HTTP gateway."""
    pki = own.state.pki
    credentials = StaticCredentials(
        chain=FileSource(pki / "etcd-client.crt", "certificate"),
        key=FileSource(pki / "etcd-client.key", "key"),
    )
    authority = FileSource(pki / "etcd-ca.crt", "authority")
    where = Config(f"https://127.0.0.1:{own.record.ports.etcd}", credentials, authority=authority)
    async with Client(where) as client:
        yield client


async def compact(own: LocalCluster) -> None:
    """Compact etcd, so that it has only the last version."""
    async with etcd(own) as store:
        answer = await store.raw("POST", "/v3/kv/range", b'{"key": "AA=="}')
        revision = msgspec.json.decode(answer.body)["header"]["revision"]
        await store.raw(
            "POST", "/v3/kv/compaction", msgspec.json.encode({"revision": revision, "physical": True})
        )


async def test_compacted_version_is_listed_again(clusters: Clusters) -> None:
    """While the watch is disconnected, objects change, etcd is compacted and the server restarted: the watch
    gets a 410."""
    own = await clusters.start("compaction")
    async with wired(own) as (wire, over_wire), Client(config.load(own.kubeconfig)) as near:
        await create_many(near, "default", ["stays", "goes"])
        async with Client(over_wire) as far, watching(far, "default") as live:
            restarts = Expired()
            wire.is_down = True
            wire.cut()
            await near.delete(CONFIG_MAPS, "goes", namespace="default", as_type=Object)
            await create_many(near, "default", ["comes"])
            await compact(own)
            await asyncio.to_thread(local.stop_components, own.state, ("kube-apiserver",))
            wire.lead_to((await clusters.start("compaction")).server)
            wire.is_down = False
            await live.until(lambda: {"stays", "comes"} <= live.data().keys() and "goes" not in live.data())
            assert restarts.since() >= 1, "the server answered 410"
            assert (live.new["stays"], live.new["comes"], live.gone["goes"]) == (1, 1, 1)


class Expired:
    """How many watches of ConfigMaps have been answered with 410 since its creation."""

    def __init__(self) -> None:
        self._before = self._count()

    def since(self) -> float:
        return self._count() - self._before

    @staticmethod
    def _count() -> float:
        return float(watch_restarts_total.labels("configmaps", "expired")._value.get())


async def test_cluster_scoped_resource_is_watched(client: Client, namespace: str) -> None:
    async with watching(client, None, resource=NAMESPACES) as live:
        assert namespace in live.data()
