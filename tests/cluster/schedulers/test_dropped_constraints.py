"""PodGroups of Kubernetes with topology levels: held without the feature gate, and deleted when no pod names
them any more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from grove import timing
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import EVENTS, NODES, PODS
from grove.operator.caches.resources import external_resource
from grove.schedulers.kai import Kai
from grove.schedulers.registry import SchedulerBackends
from tests.chart import AWARE, operator_account_of
from tests.cluster.operator.scheduling.test_enforcement import emitted, until_enforced
from tests.cluster.operator.scheduling.test_placement import gpus
from tests.cluster.operator.scheduling.test_topology import KEYS, TOPOLOGIES, a_topology, topology
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS
from tests.cluster.operator.support.workloads import clique, group, workload
from tests.cluster.operator.support.world import World, watching
from tests.cluster.schedulers.native import IN_TREE, gang_scheduling, install_crds, served_backend
from tests.cluster.schedulers.test_gang_scheduling import OTHER_RACK, PACKED, RACK, bound
from tests.clusters import Clusters
from tests.namespaces import make_namespace

_KIND = served_backend().gang_object_kind
assert _KIND is not None
GROUPS = external_resource(_KIND)
WITH_KAI = SchedulerBackends({**IN_TREE.by_name, "kai-scheduler": Kai()}, "default-scheduler")
"""KAI is configured as well, and not installed."""


@asynccontextmanager
async def two_racks(clusters: Clusters, name: str, *, constraints: bool) -> AsyncIterator[World]:
    """A cluster of two racks with gang scheduling; `constraints`: with TopologyAwareWorkloadScheduling."""
    settings = gang_scheduling()
    settings["feature_gates"] = {**settings["feature_gates"], "TopologyAwareWorkloadScheduling": constraints}
    cluster = await clusters.start(name, nodes=4, shape="1x1x2x2", **settings)
    async with Client(config.load(cluster.kubeconfig)) as client:
        await install_crds(client)
        nodes = sorted(node.metadata.name for node in (await client.list(NODES, as_type=Object)).items)
        for number, node in enumerate(nodes):
            wider = dict.fromkeys(KEYS[:2], "all")  # without them the racks are no domains
            labels = {**wider, RACK: f"r{number // 2}", OTHER_RACK: f"r{number // 2}"}
            await client.patch(NODES, node, {"metadata": {"labels": labels}}, as_type=Object)
        await make_namespace(client, name)
        account = await operator_account_of(cluster, AWARE)
        async with watching(client, account.config, name) as world:
            await world.watch(GROUPS, EVENTS)
            yield world


def uids(world: World) -> set[str]:
    """The UIDs of the PodGroups of the constrained gang."""
    return {each.uid for each in world.all(GROUPS) if each.labels["grove.io/podgang"] == "mine-0"}


async def test_gang_is_held_without_the_feature_gate(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "DROPPED_CONSTRAINTS_RETRY", 2.0)
    async with (
        two_racks(clusters, "no-gate", constraints=False) as world,
        topology(world, "grove-topology"),
        operating(world, topology_aware=True, backends=WITH_KAI),
    ):
        body = workload("mine", clique("a", 2))
        body["spec"]["template"]["topologyConstraint"] = PACKED
        await world.create(SETS, body)
        await world.create(SETS, workload("free", clique("a", 2)))
        await until_enforced(world, "False", "ConstraintsDroppedByAPIServer")
        await world.until(lambda: len(bound(world)) == 2, "the gang without constraints")
        kinds = {"PodCliqueSet", "PodGang"}
        await world.until(lambda: emitted(world, "TopologyConstraintsNotEnforced") == kinds, "events")
        await world.until(
            lambda: (
                "TopologyAwareWorkloadScheduling=true"
                in str(world.get(CLIQUES, "mine-0-a").status.get("lastErrors"))
            ),
            "the error on the clique",
        )
        dropped = "ConstraintsDroppedByAPIServer"
        await world.until(lambda: world.get(GANGS, "mine-0").waits_for == dropped, "the reason to wait")
        before = uids(world)
        await world.until(lambda: uids(world) - before, "another attempt")
        other = workload("other", clique("a", 2, pod={"schedulerName": "kai-scheduler"}))
        other["metadata"]["labels"] = {"kai.scheduler/queue": "test"}
        other["spec"]["template"]["topologyConstraint"] = PACKED
        await world.create(SETS, other)
        await until_enforced(world, "False", "SchedulerObjectFailed", name="other")
        assert {pod.labels["app.kubernetes.io/part-of"] for pod in world.pods()} == {"free"}


async def test_group_that_no_pod_names_is_deleted(clusters: Clusters) -> None:
    async with (
        two_racks(clusters, "obsolete", constraints=True) as world,
        topology(world, "grove-topology"),
        operating(world, topology_aware=True, backends=IN_TREE),
    ):
        await _each_gang_in_a_rack_of_its_own(world)
        body = workload("mine", gpus("a", 2, 8))
        body["spec"]["template"]["topologyConstraint"] = PACKED
        await world.create(SETS, body)
        await world.until(lambda: len(bound(world)) == 2, "both pods")
        await until_enforced(world, "True", "EnforcedByScheduler")
        (first,) = uids(world)
        levels = a_topology(TOPOLOGIES, "grove-topology")["spec"]["levels"]
        other = [{**level, "key": OTHER_RACK} if level["domain"] == "rack" else level for level in levels]
        patch = {"spec": {"levels": other}}
        await world.client.patch(TOPOLOGIES, "grove-topology", patch, as_type=Object)
        await world.until(lambda: len(uids(world)) == 2, "the PodGroup of the new level")
        lost = {pod.name for pod in world.pods()}
        for name in lost:
            await world.delete(PODS, name)
        await world.until(lambda: len(bound(world)) == 2 and not lost & bound(world).keys(), "other pods")
        await world.until(lambda: len(uids(world)) == 1, "the deletion of the first PodGroup")
        assert uids(world) != {first}
        elsewhere = {"metadata": {"labels": {OTHER_RACK: "elsewhere"}}}
        await world.client.patch(NODES, next(iter(bound(world).values())), elsewhere, as_type=Object)
        await until_enforced(world, "False", "RequiredDomainsNotMet")


async def _each_gang_in_a_rack_of_its_own(world: World) -> None:
    """The constraint of a set holds for its base gang and for each scaled gang by itself."""
    body = workload("each", gpus("a", 2, 8), groups=(group("x", 2, 1, "a"),))
    body["spec"]["template"]["topologyConstraint"] = PACKED
    await world.create(SETS, body)
    await world.until(lambda: len(bound(world)) == 4, "both gangs")
    nodes = {each.metadata.name: each for each in (await world.client.list(NODES, as_type=Object)).items}
    racks: dict[str, set[str]] = {}
    for pod in world.pods():
        rack = nodes[pod.spec["nodeName"]].metadata.labels[RACK]
        racks.setdefault(pod.labels["grove.io/podgang"], set()).add(rack)
    assert sorted(map(sorted, racks.values())) == [["r0"], ["r1"]]
    await world.delete(SETS, "each")
    await world.until(lambda: not world.all(PODS), "its pods to be deleted")
