"""Objects of schedulers (KAI's PodGroups) exist before the pods of their gangs, even if the CRD is installed
late."""

from __future__ import annotations

import asyncio
from typing import Any

import yaml

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.crds import crd
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.operator.caches.resources import external_resource
from grove.schedulers.kai import POD_GROUP
from grove.schedulers.registry import backends
from tests.chart import AWARE, operator_account_of
from tests.cluster.conftest import PATIENCE, apply, established
from tests.cluster.operator.scheduling.test_topology import BLOCK, RACK, topology
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.operator.support.world import World, watching
from tests.cluster.schedulers.test_topology_sync import TopologyWatch
from tests.clusters import Clusters
from tests.namespaces import make_namespace
from tests.shared import shared_data

POD_GROUPS = external_resource(POD_GROUP)
KAI = backends(Scheduler((SchedulerProfile("kai-scheduler"),)))


def upstream(name: str) -> dict[str, Any]:
    """One of upstream's topology workloads, unchanged."""
    text = shared_data(f"workloads/{name}.yaml").read_text()
    (body,) = (part for part in yaml.load_all(text, Loader=yaml.CSafeLoader) if part)
    found: dict[str, Any] = body
    return found


async def install(client: Client, definition: dict[str, Any]) -> None:
    definition.pop("status", None)
    await apply(client, definition)
    async with asyncio.timeout(PATIENCE):
        await established(client, definition["metadata"]["name"])


def level(key: str) -> dict[str, str]:
    return {"topology": "grove-topology", "requiredTopologyLevel": key}


def expected() -> dict[str, Any]:
    """The specs of the PodGroups of `tas-pcsg-scale` (TAS10)."""
    group, common = "tas-pcsg-scale-0-inference-group", {"minMember": 2, "queue": "test"}

    def leaf(replica: int, **more: str) -> dict[str, Any]:
        return {"name": f"{group}-{replica}-worker", "minMember": 2, **more}

    parent = {"name": f"{group}-0", "minSubGroup": 1, "topologyConstraint": level(RACK)}
    base = {"topologyConstraint": level(BLOCK), "subGroups": [parent, leaf(0, parent=f"{group}-0")]}
    scaled = {
        f"{group}-{number}": {
            **common,
            "topologyConstraint": level(RACK),
            "subGroups": [leaf(number + 1)],
        }
        for number in (0, 1)
    }
    return {"tas-pcsg-scale-0": {**common, **base}, **scaled}


async def test_pod_groups_precede_pods_when_crd_comes_late(clusters: Clusters) -> None:
    text = shared_data("crds/kai/scheduling.run.ai_podgroups.yaml").read_text()
    cluster = await clusters.start("kai", nodes=1, shape="1x1x1x1")
    connection = config.load(cluster.kubeconfig)
    async with Client(connection) as client:
        for definition in crd.all_definitions():
            await install(client, definition)
        await make_namespace(client, "kai")
        account = await operator_account_of(cluster, AWARE)
        async with (
            watching(client, account.config, "kai") as world,
            topology(world, "grove-topology"),
            operating(world, topology_aware=True, backends=KAI),
        ):
            await _set_waits_without_crd(world)
            await install(client, yaml.load(text, Loader=yaml.CSafeLoader))
            await world.watch(POD_GROUPS)
            await _pod_groups_created(world)
            await _pod_group_repaired(world)
            await _topology_synced(world)


async def _set_waits_without_crd(world: World) -> None:
    """Sets for the scheduler get no pods and report why; others are not affected."""
    await world.create(SETS, upstream("tas-pcsg-scale"))
    await world.create(SETS, workload("plain", clique("a")))
    await world.until(lambda: world.pods(part_of="plain"), "the pods of a set for the default scheduler")
    await world.until(lambda: len(world.names(GANGS)) == 4, "all gangs")
    await world.until(
        lambda: "PodGroup" in str(world.get(SETS, "tas-pcsg-scale").status.get("lastErrors")), "the error"
    )
    assert world.pods(part_of="tas-pcsg-scale") == []


async def _pod_groups_created(world: World) -> None:
    """The installation of the CRD alone enqueues the sets that wait for it."""
    await world.until(
        lambda: len(world.pods(part_of="tas-pcsg-scale")) == 6 and len(world.all(POD_GROUPS)) == 3,
        "the pods and their PodGroups",
    )
    found = {group.name: group for group in world.all(POD_GROUPS)}
    assert {name: group.spec for name, group in found.items()} == expected()
    for name, group in found.items():
        assert group.owners == (world.get(GANGS, name).uid,)
    for pod in world.pods(part_of="tas-pcsg-scale"):
        assert pod.spec["schedulerName"] == "kai-scheduler"
        assert pod.labels["kai.scheduler/subgroup-name"] == pod.labels["grove.io/podclique"]
        assert pod.metadata.annotations["pod-group-name"] == pod.labels["grove.io/podgang"]
    await world.until(
        lambda: not any(one.status.get("lastErrors") for one in (*world.all(SETS), *world.all(CLIQUES))),
        "no error",
    )


async def _topology_synced(world: World) -> None:
    """The CRD of KAI's topologies is installed last."""
    missing = "topology CRD for scheduler backend kai-scheduler not found in cluster"
    text = shared_data("crds/kai/kai.scheduler_topologies.yaml").read_text()
    sight = TopologyWatch(world)
    async with sight.open():
        await world.until(lambda: sight.drift("grove-topology")[0] == "True", "the missing CRD reported")
        assert sight.message("grove-topology") == missing
        await install(world.client, yaml.load(text, Loader=yaml.CSafeLoader))
        await world.until(lambda: sight.drift("grove-topology") == ("False", 1), "KAI's topology in sync")


async def _pod_group_repaired(world: World) -> None:
    """Edited fields are restored, except for the queue, which belongs to KAI's administrators."""
    name = "tas-pcsg-scale-0"
    await world.patch(POD_GROUPS, name, {"spec": {"minMember": 1, "queue": "elsewhere", "subGroups": []}})
    wanted = {**expected()[name], "queue": "elsewhere"}
    await world.until(lambda: world.get(POD_GROUPS, name).spec == wanted, "the PodGroup restored")
