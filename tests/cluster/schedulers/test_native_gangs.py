"""What the unmodified scheduler does with the pods of a gang: large ones find room first, and a gang of a
higher priority preempts another one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.naming import labels
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PRIORITY_CLASSES
from grove.local.build.versions import default_minor
from grove.schedulers.registry import SchedulerBackends, backends
from tests.chart import AWARE, operator_account_of
from tests.cluster.operator.scheduling.test_topology import RACK, topology
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, group, workload
from tests.cluster.operator.support.world import World, watching
from tests.cluster.schedulers.native import IN_TREE, gang_scheduling, install_crds
from tests.clusters import Clusters
from tests.namespaces import make_namespace

PLAIN = backends(Scheduler((SchedulerProfile("default-scheduler", {"placement": "Off"}),)))
PACKED = {"topologyName": "grove-topology", "pack": {"required": "rack"}}


@asynccontextmanager
async def two_nodes(clusters: Clusters, name: str) -> AsyncIterator[World]:
    """A cluster of two nodes of eight GPUs, with gang scheduling."""
    cluster = await clusters.start(name, nodes=2, shape="1x1x1x2", **gang_scheduling())
    async with Client(config.load(cluster.kubeconfig)) as client:
        await install_crds(client)
        await make_namespace(client, name)
        account = await operator_account_of(cluster, AWARE)
        async with watching(client, account.config, name) as world:
            yield world


def gpus(name: str, replicas: int, each: int) -> dict[str, Any]:
    """A clique of pods with so many GPUs each, which the scheduler spreads by their CPU."""
    resources = {"limits": {"nvidia.com/gpu": str(each)}, "requests": {"cpu": "1"}}
    pod = {"containers": [{"name": "main", "image": "model:1", "resources": resources}]}
    return clique(name, replicas, pod=pod)


def bound(world: World, name: str) -> list[tuple[str, str]]:
    """The clique and the node of each pod of a set that has one."""
    pods = world.pods(part_of=name)
    return [(pod.labels[labels.CLIQUE], pod.spec["nodeName"]) for pod in pods if pod.spec.get("nodeName")]


async def delete(world: World, name: str) -> None:
    await world.delete(SETS, name)
    await world.until(lambda: not world.pods(part_of=name) and not world.find(SETS, name), "its deletion")


async def test_large_pod_of_a_gang_gets_its_node_first(clusters: Clusters) -> None:
    """The leader needs a node alone. Its clique is the last one of the set. The gang scheduling of 1.36 takes
    the pods of a group in any order."""
    async with two_nodes(clusters, "sizes") as world:
        for scheduler in (PLAIN,) if default_minor() == "1.36" else (IN_TREE, PLAIN):
            await _created_in_order(world, scheduler)
        await _released_in_order(world)


async def _created_in_order(world: World, scheduler: SchedulerBackends) -> None:
    async with operating(world, backends=scheduler):
        for turn in range(3):
            name = f"mixed-{turn}"
            await world.create(SETS, workload(name, gpus("worker", 8, 1), gpus("leader", 1, 8)))
            await world.until(lambda name=name: len(bound(world, name)) == 9, "a node for every pod")
            assert len({node for pods, node in bound(world, name) if pods == f"{name}-0-worker"}) == 1
            await delete(world, name)


async def _released_in_order(world: World) -> None:
    """The pods of a scaled gang are released together, once the base gang is scheduled."""
    async with operating(world, backends=PLAIN):
        members = gpus("worker", 4, 1), gpus("leader", 1, 4)
        body = workload("scaled", *members, groups=(group("model", 2, 1, "worker", "leader"),))
        await world.create(SETS, body)
        await world.until(lambda: len(bound(world, "scaled")) == 10, "a node for every pod")


async def test_gang_with_a_topology_level_preempts_since_1_37(clusters: Clusters) -> None:
    async with two_nodes(clusters, "preempting") as world, topology(world, "grove-topology"):
        for node in (await world.client.list(NODES, as_type=Object)).items:
            rack = {"metadata": {"labels": {RACK: "r0"}}}
            await world.client.patch(NODES, node.metadata.name, rack, as_type=Object)
        for name, value in (("high", 100), ("low", 1)):
            body = {"metadata": {"name": name}, "value": value}
            await world.client.create(PRIORITY_CLASSES, body, as_type=Object)
        async with operating(world, topology_aware=True, backends=IN_TREE):
            await world.create(SETS, _filling("low", "low"))
            await world.until(lambda: len(bound(world, "low")) == 4, "a gang on all nodes")
            await world.create(SETS, _filling("packed", "high", topologyConstraint=PACKED))
            if default_minor() == "1.36":
                await world.until(lambda: _unschedulable(world, "packed"), "no preemption for it")
                assert (len(bound(world, "packed")), len(bound(world, "low"))) == (0, 4)
                await delete(world, "packed")
                await world.create(SETS, _filling("packed", "high"))
            await world.until(lambda: len(bound(world, "packed")) == 4, "the nodes of the other gang")


def _filling(name: str, priority_class: str, **template: Any) -> dict[str, Any]:
    """Four pods with half of a node's GPUs each."""
    body = workload(name, gpus("worker", 4, 4))
    body["spec"]["template"] |= {"priorityClassName": priority_class, **template}
    return body


def _unschedulable(world: World, name: str) -> bool:
    pods = world.pods(part_of=name)
    return len(pods) == 4 and all(pod.condition("PodScheduled") == "False" for pod in pods)
