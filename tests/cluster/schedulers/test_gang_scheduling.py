"""Kubernetes' own gang scheduling: the unmodified scheduler binds a whole gang in one rack, or no pod."""

from __future__ import annotations

from typing import Any

import pytest

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES, PODS
from grove.operator.caches.resources import external_resource
from grove.schedulers.kube_podgroups import V1Beta1
from tests.chart import AWARE, operator_account_of
from tests.cluster.operator.scheduling.test_topology import TOPOLOGIES, a_topology, topology
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS, gated
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.operator.support.world import World, watching
from tests.cluster.schedulers.native import IN_TREE, gang_scheduling, install_crds, served_backend
from tests.clusters import Clusters
from tests.namespaces import make_namespace

RACK = "topology.example.com/rack"
OTHER_RACK = "example.com/rack"
SPECIAL = "example.com/special"
PACKED = {"topologyName": "grove-topology", "pack": {"required": "rack"}}


def bound(world: World) -> dict[str, str]:
    """The node of each pod that has one."""
    return {pod.name: pod.spec["nodeName"] for pod in world.pods() if pod.spec.get("nodeName")}


@pytest.mark.proves("gang", scheduler="default-scheduler+gangScheduling")
@pytest.mark.proves("required-gang", scheduler="default-scheduler+gangScheduling")
@pytest.mark.proves("waiting-reason", scheduler="default-scheduler+gangScheduling")
async def test_gang_is_bound_completely_in_one_rack_or_not_at_all(clusters: Clusters) -> None:
    cluster = await clusters.start(
        "in-tree",
        nodes=4,
        shape="1x1x2x2",
        **gang_scheduling(),
    )
    connection = config.load(cluster.kubeconfig)
    async with Client(connection) as client:
        await install_crds(client)
        nodes = sorted(node.metadata.name for node in (await client.list(NODES, as_type=Object)).items)
        racks = {name: f"r{number // 2}" for number, name in enumerate(nodes)}
        for name, rack in racks.items():
            labels = {RACK: rack, OTHER_RACK: rack}
            await client.patch(NODES, name, {"metadata": {"labels": labels}}, as_type=Object)
        await make_namespace(client, "in-tree")
        account = await operator_account_of(cluster, AWARE)
        async with (
            watching(client, account.config, "in-tree") as world,
            topology(world, "grove-topology"),
            operating(world, topology_aware=True, backends=IN_TREE),
        ):
            world.always(lambda: _whole_or_nothing(world))
            picky = clique("picky", 1, pod={"nodeSelector": {SPECIAL: "yes"}})
            body = workload("gang", clique("eager", 4, 1), picky)
            body["spec"]["template"]["topologyConstraint"] = PACKED
            await world.create(SETS, body)
            held = served_backend().gates_hold_group
            await world.until(lambda: len(world.pods()) == (2 if held else 5), "the pods of the gang")
            await world.until(
                lambda: any(map(_unschedulable, world.pods())),
                "the scheduler to report the gang as unschedulable",
            )
            waiting = (2, 0) if held else (5, 3)
            gates = sum(map(gated, world.pods()))
            assert (len(world.pods()), gates) == waiting, "pods beyond the minimum are gated, or do not exist"
            chosen = nodes[-1]
            await client.patch(NODES, chosen, {"metadata": {"labels": {SPECIAL: "yes"}}}, as_type=Object)
            await world.until(lambda: len(bound(world)) == 5, "the whole gang, and the rest of it")
            assert {racks[node] for node in bound(world).values()} == {racks[chosen]}
            await _delete_set(world, "gang")
            await _gang_larger_than_a_rack(world)
            await _each_replica_in_one_rack(world, racks)
            await _all_on_one_host(world)
            await _replacement_after_topology_change(world, racks)
            if held:
                await _minimum_is_changed_in_place(world)


def big(name: str, count: int) -> dict[str, Any]:
    """A clique of pods with half of a node's GPUs each: a rack has room for four."""
    half = {"limits": {"nvidia.com/gpu": "4"}}
    return clique(name, count, pod={"containers": [{"name": "main", "image": "model:1", "resources": half}]})


async def _delete_set(world: World, name: str) -> None:
    await world.delete(SETS, name)
    await world.until(lambda: not world.all(PODS), "its pods to be deleted")


async def _gang_larger_than_a_rack(world: World) -> None:
    """TAS13: the cluster has room for five such pods, no rack has."""
    body = workload("insufficient", big("worker", 5))
    body["spec"]["template"]["topologyConstraint"] = PACKED
    await world.create(SETS, body)
    await world.until(
        lambda: len(world.pods()) == 5 and all(map(_unschedulable, world.pods())), "all unschedulable"
    )
    assert bound(world) == {}
    await world.until(lambda: _has_waiting_reason(world, "insufficient-0"), "the waiting reason on the gang")
    await _delete_set(world, "insufficient")


async def _each_replica_in_one_rack(world: World, racks: dict[str, str]) -> None:
    """TAS3 and TAS14: four pods fill a rack, and each replica finds one."""
    body = workload("each", big("worker", 4), replicas=2)
    body["spec"]["template"]["topologyConstraint"] = PACKED
    await world.create(SETS, body)
    await world.until(lambda: len(bound(world)) == 8, "both replicas")
    found = [{racks[n] for pod, n in bound(world).items() if pod.startswith(f"each-{i}-")} for i in (0, 1)]
    assert sorted(map(sorted, found)) == [["r0"], ["r1"]]
    await _delete_set(world, "each")


async def _all_on_one_host(world: World) -> None:
    """TAS5: a clique that is the whole gang may have its own constraint."""
    body = workload("host", {**big("worker", 2), "topologyConstraint": {"pack": {"required": "host"}}})
    body["spec"]["template"]["topologyConstraint"] = {"topologyName": "grove-topology"}
    await world.create(SETS, body)
    await world.until(lambda: len(bound(world)) == 2, "both pods")
    assert len(set(bound(world).values())) == 1
    await _delete_set(world, "host")


async def _minimum_is_changed_in_place(world: World) -> None:
    """A clique is scaled to 0 and back: its gang keeps its PodGroup, with another minimum."""
    groups = external_resource(V1Beta1.kind)
    await world.watch(groups)
    await world.create(SETS, workload("elastic", clique("a"), clique("b")))
    await world.until(lambda: len(bound(world)) == 2, "both pods")
    (name,) = {pod.spec["schedulingGroup"]["podGroupName"] for pod in world.pods()}
    for count in (0, 1):
        await world.scale(CLIQUES, "elastic-0-b", count)
        minimum = {"gang": {"minCount": 1 + count}}
        await world.until(
            lambda minimum=minimum: world.get(groups, name).spec["schedulingPolicy"] == minimum,
            "the other minimum",
        )
        await world.until(lambda count=count: len(bound(world)) == 1 + count, "its pods")
    owned = [each.name for each in world.all(groups) if each.labels["grove.io/podgang"] == "elastic-0"]
    assert owned == [name]
    await _delete_set(world, "elastic")


async def _replacement_after_topology_change(world: World, racks: dict[str, str]) -> None:
    """A PodGroup is immutable. A pod that replaces one of an earlier PodGroup is scheduled all the same:
    first with another node label for racks, then with a topology without racks."""
    body = workload("later", big("worker", 2))
    body["spec"]["template"]["topologyConstraint"] = PACKED
    await world.create(SETS, body)
    await world.until(lambda: len(bound(world)) == 2, "both pods")
    levels = a_topology(TOPOLOGIES, "grove-topology")["spec"]["levels"]
    other = [{**level, "key": OTHER_RACK} if level["domain"] == "rack" else level for level in levels]
    for changed in (other, [level for level in levels if level["domain"] != "rack"]):
        before = _constraint(world, "later-0")
        patch = {"spec": {"levels": changed}}
        await world.client.patch(TOPOLOGIES, "grove-topology", patch, as_type=Object)
        await world.until(lambda before=before: _constraint(world, "later-0") != before, "another constraint")
        lost = world.pods()[0]
        await world.delete(PODS, lost.name)
        await world.until(lambda lost=lost: lost.name not in bound(world) and len(bound(world)) == 2, "both")
        if changed is other:
            assert len({racks[node] for node in bound(world).values()}) == 1
    await _delete_set(world, "later")


def _constraint(world: World, gang: str) -> object:
    return world.get(GANGS, gang).spec.get("topologyConstraint")


def _has_waiting_reason(world: World, gang: str) -> bool:
    """Whether the gang's condition has the scheduler's message."""
    found = world.find(GANGS, gang)
    conditions = found.status.get("conditions", ()) if found else ()
    messages = [each["message"] for each in conditions if each["type"] == "Scheduled"]
    return any(
        each.startswith(f"Too few pods scheduled in {gang}-worker; default-scheduler says: ")
        for each in messages
    )


def _unschedulable(pod) -> bool:
    return pod.condition("PodScheduled") == "False" and not gated(pod)


def _whole_or_nothing(world: World) -> None:
    """No pod beyond the minimum is bound before the clique that is hard to place. Not checked during
    deletion, which has no order."""
    found = world.find(SETS, "gang")
    if found is None or found.terminating:
        return
    names = bound(world)
    assert sum("eager" in name for name in names) <= 1 or any("picky" in name for name in names), names
