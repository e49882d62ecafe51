"""ClusterTopologies and KAI's Topologies on the real API server: TAS1, TAS18, TAS19, operator restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from grove import timing
from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, Resource
from grove.kube.errors import NotFound
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.resources import external_resource, resource_of
from grove.schedulers.kai_topology import TOPOLOGY
from grove.schedulers.registry import backends
from tests.chart import Account
from tests.cluster.api.test_crds import kubectl
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import SETS, AnyObject
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.operator.support.world import World, watching

TOPOLOGIES, BINDINGS = resource_of(ClusterTopology.KIND), resource_of(ClusterTopologyBinding.KIND)
KAI_TOPOLOGIES = external_resource(TOPOLOGY)
KAI = backends(Scheduler((SchedulerProfile("kai-scheduler"),)))
HOST = "kubernetes.io/hostname"


class TopologyWatch:
    """A watch of all topologies: ClusterTopologies, bindings and KAI's Topologies."""

    def __init__(self, world: World) -> None:
        self.world, self._client = world, world.client
        self._caches = {kind: Cache(kind, AnyObject) for kind in (TOPOLOGIES, BINDINGS, KAI_TOPOLOGIES)}
        self._created: list[tuple[Resource, str]] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        tasks = []
        for cache in self._caches.values():
            cache.subscribe(lambda *_: self.world.touch())
            tasks.append(asyncio.create_task(Reflector(self._client, cache).run()))
        try:
            yield
        finally:
            for kind, name in reversed(self._created):
                with suppress(NotFound):
                    await self._client.delete(kind, name, as_type=AnyObject)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def create(self, kind: Resource, name: str, spec: dict[str, Any]) -> None:
        self._created.append((kind, name))
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        await self._client.create(kind, body, as_type=AnyObject)

    def levels(self, name: str) -> list[str]:
        """The node labels of KAI's Topology; empty if it does not exist."""
        found = self._caches[KAI_TOPOLOGIES].get("", name)
        return [level["nodeLabel"] for level in found.spec["levels"]] if found else []

    def uid(self, name: str) -> str:
        found = self._caches[KAI_TOPOLOGIES].get("", name)
        return found.uid if found else ""

    def drift(self, name: str) -> tuple[str, int]:
        """The status of the condition `SchedulerTopologyDrift`, and the observed generation."""
        found = self._caches[TOPOLOGIES].get("", name)
        if found is None:
            return "", 0
        return found.condition("SchedulerTopologyDrift"), found.status.get("observedGeneration", 0)

    def status(self, name: str) -> dict[str, Any]:
        found = self._caches[TOPOLOGIES].get("", name)
        return dict(found.status) if found else {}

    def message(self, name: str) -> str:
        found = self._caches[TOPOLOGIES].get("", name)
        assert found is not None
        (entry,) = found.status["schedulerTopologyStatuses"]
        return str(entry.get("message", ""))

    def shadowed(self, name: str) -> str:
        found = self._caches[BINDINGS].get("", name)
        return found.condition("Shadowed") if found else ""

    async def patch(self, name: str, *keys: str) -> None:
        await self._client.patch(TOPOLOGIES, name, {"spec": levels(*keys)}, as_type=AnyObject)


def levels(*keys: str) -> dict[str, Any]:
    return {"levels": [{"domain": f"level-{number}", "key": key} for number, key in enumerate(keys)]}


@pytest.fixture
async def topologies(
    client: Client, aware_account: Account, namespace: str, scheduler_crds: None
) -> AsyncIterator[TopologyWatch]:
    async with watching(client, aware_account.config, namespace) as world:
        found = TopologyWatch(world)
        async with found.open():
            yield found


@pytest.mark.proves("topology-sync", scheduler="kai-scheduler")
async def test_kai_topology_is_created_recreated_and_repaired(
    topologies: TopologyWatch, client: Client
) -> None:
    until = topologies.world.until
    async with operating(topologies.world, topology_aware=True, backends=KAI):
        await topologies.create(TOPOLOGIES, "managed", levels("zone", "rack"))
        await until(lambda: topologies.levels("managed") == ["zone", "rack"], "KAI's topology")
        await until(lambda: topologies.drift("managed") == ("False", 1), "in sync")
        await client.delete(
            KAI_TOPOLOGIES, "managed", as_type=AnyObject, uid=(before := topologies.uid("managed"))
        )
        await until(
            lambda: topologies.uid("managed") not in ("", before), "the deleted one to be created again"
        )
        await topologies.patch("managed", "zone", "block", HOST)
        await until(lambda: topologies.levels("managed") == ["zone", "block", HOST], "the new levels")
        await until(lambda: topologies.drift("managed") == ("False", 2), "in sync again")
        await topologies.patch("managed", HOST, "zone")
        await until(
            lambda: topologies.drift("managed") == ("True", 2), "the levels that KAI rejects to be reported"
        )
        assert "lowest level" in topologies.message("managed")
        assert topologies.levels("managed") == ["zone", "block", HOST]
        await topologies.patch("managed", "zone", "rack")
        await until(lambda: topologies.drift("managed") == ("False", 4), "in sync once more")
        await topologies.create(BINDINGS, "managed", levels("zone"))
        await until(
            lambda: topologies.shadowed("managed") == "True", "the binding to be reported as shadowed"
        )
    await client.delete(BINDINGS, "managed", as_type=AnyObject)
    await client.delete(TOPOLOGIES, "managed", as_type=AnyObject)
    async with operating(topologies.world, topology_aware=True, backends=KAI):
        await until(lambda: not topologies.levels("managed"), "KAI's Topology to be deleted")


async def test_topology_status_follows_nodes_and_sets(topologies: TopologyWatch, client: Client) -> None:
    until, world = topologies.world.until, topologies.world
    nodes = sorted(node.metadata.name for node in (await client.list(NODES, as_type=Object)).items)
    row, tray = "example.com/census-row", "example.com/census-tray"

    async def label(chosen: list[str], **values: str | None) -> None:
        for node in chosen:
            await client.patch(NODES, node, {"metadata": {"labels": values}}, as_type=Object)

    def counts() -> list[tuple[int, int, int]]:
        statuses = topologies.status("counted").get("levels", ())
        return [
            (each["labelledNodes"], each["values"], each.get("nestingViolations", 0)) for each in statuses
        ]

    await label(nodes[:3], **{row: "a", tray: "t"})
    try:
        async with operating(world, topology_aware=True, backends=KAI):
            await topologies.create(TOPOLOGIES, "counted", levels(row, tray))
            await until(lambda: counts() == [(3, 1, 0), (3, 1, 0)], "all nodes counted")
            assert topologies.status("counted")["nodes"] == len(nodes)
            await label(nodes[:1], **{row: "b"})
            await until(lambda: counts() == [(3, 2, 0), (3, 1, 1)], "a tray in two rows")
            body = workload("counting", clique("a"))
            pack = {"topologyName": "counted", "pack": {"preferred": "level-1"}}
            body["spec"]["template"]["topologyConstraint"] = pack
            await world.create(SETS, body)
            users = {"count": 1, "podCliqueSets": [f"{world.namespace}/counting"]}
            await until(lambda: topologies.status("counted").get("usedBy") == users, "the sets that use it")
    finally:
        await label(nodes[:3], **{row: None, tray: None})


async def test_referenced_topology_is_compared_on_every_change(
    topologies: TopologyWatch, client: Client
) -> None:
    until = topologies.world.until
    reference = [{"schedulerName": "kai-scheduler", "reference": "referenced"}]
    async with operating(topologies.world, topology_aware=True, backends=KAI):
        spec = {**levels("zone", "rack"), "schedulerReferences": reference}
        await topologies.create(TOPOLOGIES, "compared", spec)
        await until(lambda: topologies.drift("compared") == ("True", 1), "the missing one to be reported")
        assert topologies.message("compared") == 'KAI Topology "referenced" not found'
        same = {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]}
        await topologies.create(KAI_TOPOLOGIES, "referenced", same)
        await until(lambda: topologies.drift("compared") == ("False", 1), "in sync")
        await topologies.patch("compared", "rack", "zone")
        await until(lambda: topologies.drift("compared") == ("True", 2), "the changed order to be reported")
        assert topologies.levels("referenced") == ["zone", "rack"], "never written"
        assert topologies.message("compared").endswith("expected [rack, zone], found [zone, rack]")
        assert topologies.levels("compared") == [], "the operator creates none"
        await client.delete(KAI_TOPOLOGIES, "referenced", as_type=AnyObject)
        await until(
            lambda: topologies.message("compared") == 'KAI Topology "referenced" not found',
            "its deletion to be reported",
        )


async def test_kubectl_shows_domains_drift_and_sets(
    topologies: TopologyWatch, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "TOPOLOGY_USAGE_DELAY", 0.2)
    world = topologies.world
    async with operating(world, topology_aware=True, backends=KAI):
        await topologies.create(TOPOLOGIES, "shown", levels("zone", "rack", HOST))
        body = workload("showing", clique("a"))
        pack = {"topologyName": "shown", "pack": {"preferred": "level-1"}}
        body["spec"]["template"]["topologyConstraint"] = pack
        await world.create(SETS, body)
        await world.until(lambda: topologies.drift("shown") == ("False", 1), "in sync")
        await world.until(lambda: topologies.status("shown").get("usedBy", {}).get("count") == 1, "its use")
        header, row = await kubectl(cluster, "get", "ct", "shown")
        assert header.split() == ["NAME", "DOMAINS", "DRIFT", "SETS", "AGE"]
        assert row.split()[:-1] == ["shown", "level-0,", "level-1,", "level-2", "False", "1"]
