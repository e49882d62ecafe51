"""Kubernetes' own gang scheduling: the unmodified scheduler binds a whole gang in one rack, or nothing."""

from __future__ import annotations

import asyncio

from grove.api import crd
from grove.api.config import Scheduler, SchedulerProfile
from grove.kube import config
from grove.kube.client import Client
from grove.kube.resource import NAMESPACES, NODES
from grove.kube.wire import Object
from grove.schedulers.registry import backends
from tests.cluster.conftest import PATIENCE, apply, established
from tests.cluster.operator.harness import operating
from tests.cluster.operator.seen import SETS, gated
from tests.cluster.operator.test_topology import topology
from tests.cluster.operator.workloads import clique, workload
from tests.cluster.operator.world import World, watching
from tests.clusters import Clusters

GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")
IN_TREE = backends(Scheduler((SchedulerProfile("default-scheduler", {"gangScheduling": True}),)))
RACK = "topology.example.com/rack"
SPECIAL = "example.com/special"


def bound(world: World) -> dict[str, str]:
    """The node of each pod that has one."""
    return {pod.name: pod.spec["nodeName"] for pod in world.pods() if pod.spec.get("nodeName")}


async def test_a_gang_is_bound_whole_and_in_one_rack_or_not_at_all(clusters: Clusters) -> None:
    cluster = await clusters.start(
        "in-tree",
        nodes=4,
        shape="1x1x2x2",
        feature_gates=dict.fromkeys(GATES, True),
        runtime_config=("scheduling.k8s.io/v1alpha2=true",),
    )
    connection = config.load(cluster.kubeconfig)
    async with Client(connection) as client:
        async with asyncio.timeout(PATIENCE):
            for definition in crd.all_definitions():
                await apply(client, definition)
                await established(client, definition["metadata"]["name"])
        nodes = sorted(node.metadata.name for node in (await client.list(NODES, as_type=Object)).items)
        racks = {name: f"r{number // 2}" for number, name in enumerate(nodes)}
        for name, rack in racks.items():
            await client.patch(NODES, name, {"metadata": {"labels": {RACK: rack}}}, as_type=Object)
        await client.create(NAMESPACES, {"metadata": {"name": "in-tree"}}, as_type=Object)
        async with (
            watching(client, connection, "in-tree") as world,
            topology(world, "grove-topology"),
            operating(world, topology_aware=True, backends=IN_TREE),
        ):
            world.always(lambda: _whole_or_nothing(world))
            picky = clique("picky", 1, pod={"nodeSelector": {SPECIAL: "yes"}})
            body = workload("gang", clique("eager", 4, 1), picky)
            pack = {"topologyName": "grove-topology", "pack": {"required": "rack"}}
            body["spec"]["template"]["topologyConstraint"] = pack
            await world.create(SETS, body)
            await world.until(lambda: len(world.pods()) == 5, "all pods")
            await world.until(lambda: any(map(_refused, world.pods())), "the scheduler to refuse the gang")
            assert sum(map(gated, world.pods())) == 3, "beyond the minimum, pods wait"
            chosen = nodes[-1]
            await client.patch(NODES, chosen, {"metadata": {"labels": {SPECIAL: "yes"}}}, as_type=Object)
            await world.until(lambda: len(bound(world)) == 5, "the whole gang, and the rest of it")
            assert {racks[node] for node in bound(world).values()} == {racks[chosen]}


def _refused(pod) -> bool:
    return pod.condition("PodScheduled") == "False" and not gated(pod)


def _whole_or_nothing(world: World) -> None:
    """Nobody of the gang's surplus is bound before the clique that is hard to place."""
    names = bound(world)
    assert sum("eager" in name for name in names) <= 1 or any("picky" in name for name in names), names
