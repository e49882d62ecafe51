"""Gangs that are placed by the operator and compete for full nodes: holds, priorities, and nominations that a
scheduler forgets when it restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.naming import annotations as keys
from grove.api.naming.well_known import HOSTNAME
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import LEASES, NODES, PODS, PRIORITY_CLASSES
from grove.kube.errors import NotFound
from grove.local.cluster import processes
from grove.schedulers.registry import SchedulerBackends, backends
from tests.chart import PLACING, Account, operator_account_of
from tests.cluster.operator.scenarios.updates import change
from tests.cluster.operator.scheduling.test_placement import PACKED, gpus, racks_of, topology
from tests.cluster.operator.support.harness import World, operating, watching
from tests.cluster.operator.support.objects import GANGS, SETS, AnyObject, is_ready
from tests.cluster.operator.support.updates import current
from tests.cluster.operator.support.workloads import group, workload
from tests.cluster.schedulers.native import install_crds
from tests.clusters import Clusters, needs_kubernetes
from tests.namespaces import make_namespace


def placing(**settings: Any) -> SchedulerBackends:
    """Holds nodes after a second, and releases no gang in part."""
    profile = {"placement": "All", "holdAfter": "1s", "visibleAfter": "Never", **settings}
    return backends(Scheduler((SchedulerProfile("default-scheduler", profile),)))


@pytest.fixture
def account(placing_account: Account) -> Account:
    """With the rights that placement needs."""
    return placing_account


def foreign(name: str, selector: dict[str, str] | None = None) -> dict[str, Any]:
    """A pod of another owner that needs all GPUs of a node."""
    container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "nodeSelector": selector or {}},
    }


def nodes_of(world: World, prefix: str) -> dict[str, str]:
    """The nodes of the bound pods with this prefix, by the name of the pod."""
    return {
        pod.name: pod.spec["nodeName"]
        for pod in world.all(PODS)
        if pod.name.startswith(prefix) and pod.spec.get("nodeName")
    }


def nominations(world: World, prefix: str) -> dict[str, str]:
    return {
        pod.name: node
        for pod in world.all(PODS)
        if pod.name.startswith(prefix) and (node := pod.status.get("nominatedNodeName"))
    }


async def fill(world: World) -> dict[str, str]:
    """One pod of another owner on each node. Returns the pod of each node."""
    count = len((await world.client.list(NODES, as_type=Object)).items)
    for number in range(count):
        await world.create(PODS, foreign(f"fill-{number}"))
    await world.until(lambda: len(nodes_of(world, "fill-")) == count, "all nodes to be in use")
    return {node: pod for pod, node in nodes_of(world, "fill-").items()}


def packed(name: str, pods: int, priority_class: str = "") -> dict[str, Any]:
    worker = gpus("worker", pods, 8)
    if priority_class:
        worker["spec"]["podSpec"]["priorityClassName"] = priority_class
    body = workload(name, worker)
    body["spec"]["template"]["topologyConstraint"] = PACKED
    return body


async def wait_for_rival(world: World) -> None:
    """A pod of another owner that the scheduler has found no node for."""
    await world.create(PODS, foreign("rival"))

    def unschedulable() -> bool:
        rival = world.find(PODS, "rival")
        found = rival.status.get("conditions", ()) if rival is not None else ()
        return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in found)

    await world.until(unschedulable, "a rival that waits")


def gone(world: World, pod: str) -> bool:
    return world.find(PODS, pod) is None


def message(world: World, gang: str) -> str:
    found = world.find(GANGS, gang)
    conditions = found.status.get("conditions", ()) if found is not None else ()
    return next((each["message"] for each in conditions if each["type"] == "Scheduled"), "")


async def test_room_that_gets_free_goes_to_the_waiting_gang(world: World, client: Client) -> None:
    async with topology(client), operating(world, topology_aware=True, backends=placing()):
        fillers = await fill(world)
        await world.create(SETS, packed("mine", 2))
        await world.until(lambda: len(nominations(world, "mine-")) == 2, "held nodes")
        await world.until(lambda: "held: waits for room on" in message(world, "mine-0"), "the reason")
        held = sorted(nominations(world, "mine-").values())
        await wait_for_rival(world)
        for node in held:
            assert nodes_of(world, "mine-") == {}
            await world.delete(PODS, fillers[node])
            await world.until(partial(gone, world, fillers[node]), "room on a node")
        await world.until(lambda: len(nodes_of(world, "mine-")) == 2, "the gang that waited")
        assert sorted(nodes_of(world, "mine-").values()) == held
        assert nodes_of(world, "rival") == {}


def is_updated(pod: AnyObject) -> bool:
    return is_ready(pod) and current(pod)


async def test_update_of_a_whole_gang_goes_before_a_hold(world: World, client: Client) -> None:
    """Both pods of the gang are replaced at once, while all nodes of their rack are held for another gang."""
    async with topology(client), operating(world, topology_aware=True, backends=placing()):
        cliques = gpus("leader", 1, 8), gpus("worker", 1, 8)
        body = workload("mine", *cliques, groups=(group("model", 1, 1, "leader", "worker"),))
        body["spec"]["template"]["topologyConstraint"] = PACKED
        await world.create(SETS, body)
        await world.until(lambda: sum(map(is_ready, world.pods())) == 2, "the gang")
        before, racks = nodes_of(world, "mine-"), await racks_of(world)
        (rack,) = {racks[node] for node in before.values()}
        for node in (name for name in racks if racks[name] != rack):
            await world.create(PODS, foreign(f"fill-{node}", {HOSTNAME: node}))
        await world.until(lambda: len(nodes_of(world, "fill-")) == 12, "the other racks to be in use")
        await world.create(SETS, packed("large", 4))
        await world.until(lambda: len(nominations(world, "large-")) == 4, "held nodes")
        assert {racks[node] for node in nominations(world, "large-").values()} == {rack}
        await change(world, "mine", "next:1", "leader", "worker")
        await world.until(
            lambda: sum(is_ready(pod) and current(pod) for pod in world.pods()) == 2, "the update"
        )
        after = nodes_of(world, "mine-")
        assert before.keys().isdisjoint(after)
        assert sorted(after.values()) == sorted(before.values())
        assert nodes_of(world, "large-") == {}


@asynccontextmanager
async def priority_class(client: Client, name: str, value: int, policy: str) -> AsyncIterator[str]:
    body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }
    await client.create(PRIORITY_CLASSES, body, as_type=Object)
    try:
        yield name
    finally:
        with suppress(NotFound):
            await client.delete(PRIORITY_CLASSES, name, as_type=Object)


async def test_urgent_gang_displaces_others_unless_it_never_preempts(world: World, client: Client) -> None:
    async with (
        topology(client),
        priority_class(client, f"{world.namespace}-urgent", 100, "PreemptLowerPriority") as urgent,
        priority_class(client, f"{world.namespace}-polite", 100, "Never") as polite,
        operating(world, topology_aware=True, backends=placing()),
    ):
        low = workload("low", gpus("worker", 4, 8), replicas=4)
        low["spec"]["template"] |= {"topologyConstraint": PACKED, "terminationDelay": "1s"}
        await world.create(SETS, low)
        await world.until(lambda: len(nodes_of(world, "low-")) == 16, "gangs on all nodes")
        await world.create(SETS, packed("polite", 2, polite))
        await world.until(lambda: "no place now" in message(world, "polite-0"), "a gang that may not preempt")
        assert len(nodes_of(world, "low-")) == 16
        await world.delete(SETS, "polite")
        await world.until(lambda: world.find(SETS, "polite") is None, "its end")
        await world.create(SETS, packed("urgent", 2, urgent))
        await world.until(lambda: len(nodes_of(world, "urgent-")) == 2, "the gang that preempts")
        await world.until(lambda: len(nodes_of(world, "low-")) == 12, "the displaced gang to end as a whole")
        whole = {name.rsplit("-worker", 1)[0] for name in nodes_of(world, "low-")}
        assert len(whole) == 3


def restart(state: Any) -> None:
    """Stop the scheduler of a cluster and start it again."""
    running = processes.find_process(state.pid("kube-scheduler"))
    assert running is not None
    command = Path(f"/proc/{running.pid}/cmdline").read_bytes().split(b"\0")[:-1]
    processes.stop(running, 10.0)
    processes.spawn(
        [part.decode() for part in command], state.log("kube-scheduler"), state.pid("kube-scheduler")
    )


def renewals(world: World) -> set[str]:
    """What the nominations of the gang that waits were renewed for."""
    pods = [pod for pod in world.all(PODS) if pod.name.startswith("mine-")]
    return {pod.metadata.annotations.get(keys.NOMINATION, "") for pod in pods}


@asynccontextmanager
async def held_on_136(clusters: Clusters, settings: dict[str, Any]) -> AsyncIterator[tuple[World, Any]]:
    """A cluster of Kubernetes 1.36 with full nodes, of which two are held for a gang."""
    cluster = await clusters.start("restarts", kubernetes="1.36")
    async with Client(config.load(cluster.kubeconfig)) as client:
        await install_crds(client)
        await make_namespace(client, "restarts")
        account = await operator_account_of(cluster, PLACING)
        async with (
            watching(client, account.config, "restarts") as world,
            topology(client),
            operating(world, topology_aware=True, backends=placing(**settings)),
        ):
            await fill(world)
            await world.create(SETS, packed("mine", 2))
            await world.until(lambda: len(nominations(world, "mine-")) == 2, "held nodes")
            yield world, clusters.state("restarts")


@needs_kubernetes("1.36")
async def test_nominations_survive_a_restart_of_the_scheduler(clusters: Clusters) -> None:
    async with held_on_136(clusters, {}) as (world, state):
        fillers = {node: pod for pod, node in nodes_of(world, "fill-").items()}
        held = sorted(nominations(world, "mine-").values())
        await wait_for_rival(world)
        await asyncio.to_thread(restart, state)
        before = renewals(world)
        await world.until(lambda: before.isdisjoint(renewals(world)), "renewed nominations")
        for node in held:
            await world.delete(PODS, fillers[node])
        await world.until(lambda: len(nodes_of(world, "mine-")) == 2, "the gang that waited")
        assert sorted(nodes_of(world, "mine-").values()) == held
        assert nodes_of(world, "rival") == {}


@needs_kubernetes("1.36")
async def test_nominations_are_renewed_once_for_another_holder(clusters: Clusters) -> None:
    async with held_on_136(clusters, {}) as (world, _):
        lease = {"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "first"}}
        await world.client.create(LEASES, lease, namespace="kube-system", as_type=Object)
        await world.until(lambda: renewals(world) == {"first"}, "the first scheduler")
        changed = {"spec": {"holderIdentity": "second"}}
        await world.client.patch(LEASES, "kube-scheduler", changed, namespace="kube-system", as_type=Object)
        await world.until(lambda: renewals(world) == {"second"}, "the second scheduler")
