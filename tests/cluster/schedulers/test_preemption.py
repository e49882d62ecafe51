"""Preemption for gangs of Kubernetes' own gang scheduling: with a topology level only since version 1.37."""

from __future__ import annotations

from typing import Any

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PRIORITY_CLASSES
from grove.local.build.versions import default_minor
from tests.chart import AWARE, operator_account_of
from tests.cluster.operator.scheduling.test_topology import RACK, topology
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.operator.support.world import World, watching
from tests.cluster.schedulers.native import IN_TREE, gang_scheduling, install_crds
from tests.clusters import Clusters
from tests.namespaces import make_namespace

NAME = "preempting"
PACKED = {"topologyName": "grove-topology", "pack": {"required": "rack"}}


def a_set(name: str, priority_class: str, **template: Any) -> dict[str, Any]:
    """Four pods with half of a node's GPUs each: they fill the two nodes."""
    half = {"limits": {"nvidia.com/gpu": "4"}}
    pod = {"containers": [{"name": "main", "image": "model:1", "resources": half}]}
    body = workload(name, clique("worker", 4, pod=pod))
    body["spec"]["template"] |= {"priorityClassName": priority_class, **template}
    return body


def bound(world: World, name: str) -> int:
    return sum(bool(pod.spec.get("nodeName")) for pod in world.pods(part_of=name))


async def test_gang_with_a_topology_level_preempts_since_1_37(clusters: Clusters) -> None:
    cluster = await clusters.start(NAME, nodes=2, shape="1x1x1x2", **gang_scheduling())
    async with Client(config.load(cluster.kubeconfig)) as client:
        await install_crds(client)
        for node in (await client.list(NODES, as_type=Object)).items:
            await client.patch(
                NODES, node.metadata.name, {"metadata": {"labels": {RACK: "r0"}}}, as_type=Object
            )
        for name, value in (("high", 100), ("low", 1)):
            await client.create(
                PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value}, as_type=Object
            )
        await make_namespace(client, NAME)
        account = await operator_account_of(cluster, AWARE)
        async with (
            watching(client, account.config, NAME) as world,
            topology(world, "grove-topology"),
            operating(world, topology_aware=True, backends=IN_TREE),
        ):
            await world.create(SETS, a_set("low", "low"))
            await world.until(lambda: bound(world, "low") == 4, "a gang on all nodes")
            await world.create(SETS, a_set("packed", "high", topologyConstraint=PACKED))
            if default_minor() == "1.36":
                await world.until(lambda: _unschedulable(world, "packed"), "no preemption for it")
                assert (bound(world, "packed"), bound(world, "low")) == (0, 4)
                await world.delete(SETS, "packed")
                await world.create(SETS, a_set("packed", "high"))
            await world.until(lambda: bound(world, "packed") == 4, "the nodes of the other gang")


def _unschedulable(world: World, name: str) -> bool:
    pods = world.pods(part_of=name)
    return len(pods) == 4 and all(pod.condition("PodScheduled") == "False" for pod in pods)
