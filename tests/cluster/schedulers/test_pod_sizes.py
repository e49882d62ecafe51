"""A gang of pods of different sizes: the unmodified scheduler finds room for the large ones first."""

from __future__ import annotations

from typing import Any

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.naming import labels
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.schedulers.registry import SchedulerBackends, backends
from tests.chart import AWARE, operator_account_of
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, group, workload
from tests.cluster.operator.support.world import World, watching
from tests.cluster.schedulers.native import IN_TREE, gang_scheduling, install_crds
from tests.clusters import Clusters
from tests.namespaces import make_namespace

PLAIN = backends(Scheduler((SchedulerProfile("default-scheduler", {"placement": "Off"}),)))
NAME = "sizes"


def gpus(name: str, replicas: int, each: int) -> dict[str, Any]:
    """A clique of pods with so many GPUs each, which the scheduler spreads by their CPU."""
    resources = {"limits": {"nvidia.com/gpu": str(each)}, "requests": {"cpu": "1"}}
    return clique(
        name, replicas, pod={"containers": [{"name": "main", "image": "m:1", "resources": resources}]}
    )


def bound(world: World) -> dict[str, list[str]]:
    """By clique, the nodes of its pods."""
    found: dict[str, list[str]] = {}
    for pod in world.pods():
        if node := pod.spec.get("nodeName"):
            found.setdefault(pod.labels[labels.CLIQUE], []).append(node)
    return found


async def test_large_pod_of_a_gang_gets_its_node_first(clusters: Clusters) -> None:
    """Two nodes of eight GPUs, of which the leader needs one alone. Its clique is the last of the set."""
    cluster = await clusters.start(NAME, nodes=2, shape="1x1x1x2", **gang_scheduling())
    async with Client(config.load(cluster.kubeconfig)) as client:
        await install_crds(client)
        await make_namespace(client, NAME)
        account = await operator_account_of(cluster, AWARE)
        async with watching(client, account.config, NAME) as world:
            for scheduler in (IN_TREE, PLAIN):
                await _created_in_order(world, scheduler)
            await _released_in_order(world)


async def _created_in_order(world: World, scheduler: SchedulerBackends) -> None:
    async with operating(world, backends=scheduler):
        for turn in range(3):
            name = f"mixed-{turn}"
            await world.create(SETS, workload(name, gpus("worker", 8, 1), gpus("leader", 1, 8)))
            await world.until(lambda: sum(map(len, bound(world).values())) == 9, "a node for every pod")
            assert len({*bound(world)[f"{name}-0-worker"]}) == 1
            await _delete(world, name)


async def _released_in_order(world: World) -> None:
    """The pods of a scaled gang are released together, once the base gang is scheduled."""
    async with operating(world, backends=PLAIN):
        members = gpus("worker", 4, 1), gpus("leader", 1, 4)
        body = workload("scaled", *members, groups=(group("model", 2, 1, "worker", "leader"),))
        await world.create(SETS, body)
        await world.until(lambda: sum(map(len, bound(world).values())) == 10, "a node for every pod")
        await _delete(world, "scaled")


async def _delete(world: World, name: str) -> None:
    await world.delete(SETS, name)
    await world.until(lambda: not world.pods() and not world.all(SETS), "its pods to be deleted")
