"""`grove operator` as a process: start, leader election, missing CRDs, an unreachable API server, exit."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from grove.api.crds import crd
from grove.api.types.pod import Pod
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.resource import LEASES, PODS
from grove.kube.leader.lease import Lease
from grove.local.cluster.lifecycle import LocalCluster
from grove.local.standins.dra.objects import definition
from grove.operator.caches.resources import resource_of
from tests.chart import Account, grant_lease_and_secret, operator_account_of
from tests.cluster.api.objects import create, pod_clique_set
from tests.cluster.conftest import apply, established, removed
from tests.cluster.kube.reflector_harness import wired
from tests.cluster.operator.support.objects import AnyObject
from tests.cluster.operator.support.processes import (
    HERE,
    PATIENT_ELECTION,
    QUICK_ELECTION,
    OperatorProcess,
    configuration,
    running,
    seen,
)
from tests.cluster.operator.support.world import watching
from tests.clusters import Clusters

pytestmark = pytest.mark.cluster

LEASE = "grove-operator-leader-election"
SOON = 90.0
"""Seconds: an operator exits within five; on a busy machine it takes longer."""
DOCUMENTED = [
    "grove_gang_scheduled_seconds_count",
    "grove_gang_ready_seconds_count",
    "grove_plan_seconds_count",
    "grove_plan_writes_count",
    "grove_gated_pods",
    "grove_workloads",
    "grove_event_loop_longest_pause_seconds",
    "grove_leader",
    "process_cpu_seconds_total",
]


@pytest.fixture
async def namespace(client: Client, operator_account: Account, namespace: str) -> AsyncIterator[str]:
    """The test's namespace, in which the operator may have its lease and its certificate. It is emptied after
    the test: no operator runs then that removes the finalizers of sets."""
    await grant_lease_and_secret(client, namespace)
    async with watching(client, operator_account.config, namespace):
        yield namespace


async def make_available(client: Client, namespace: str, name: str) -> None:
    """Create a small set and wait until it is available and its gang is ready."""
    await create(client, pod_clique_set(name), namespace)
    sets = Cache(resource_of(PodCliqueSet.KIND), PodCliqueSet, namespace=namespace)
    await seen(client, sets, lambda found: is_available(found.get(namespace, name)))
    gangs = Cache(resource_of(PodGang.KIND), AnyObject, namespace=namespace)
    await seen(client, gangs, lambda found: is_ready(found.get(namespace, f"{name}-0")))


def is_available(workload: PodCliqueSet | None) -> bool:
    return workload is not None and workload.status.available_replicas == workload.spec.replicas


def is_ready(gang: AnyObject | None) -> bool:
    return gang is not None and gang.condition("Ready") == "True"


async def holder(client: Client, namespace: str) -> str | None:
    return (await client.get(LEASES, LEASE, namespace=namespace, as_type=Lease)).spec.holder_identity


async def test_single_operator_starts_works_and_exits(
    operator_account: Account, client: Client, namespace: str, tmp_path: Path
) -> None:
    async with running(tmp_path, operator_account.kubeconfig, configuration()) as operator:
        await operator.hear("working")
        await operator.hear("certificate loaded")
        assert await operator.probe("/healthz") == (200, "ok\n")
        await operator.until_ready()
        before = await operator.until_metrics(grove_workloads=0)  # sets of other tests are deleted
        assert [name for name in DOCUMENTED if name not in before] == []
        await make_available(client, namespace, "alone")
        gang = {"grove_gang_scheduled_seconds_count": 1, "grove_gang_ready_seconds_count": 1}
        after = await operator.until_metrics(grove_workloads=1, **gang)
        assert after["grove_gang_ready_seconds_sum"] > 0
        assert after["grove_plan_seconds_count"] > before["grove_plan_seconds_count"]
        assert after["grove_plan_writes_sum"] >= 5  # finalizer, service, clique, gang, pod
        assert (after["grove_leader"], after["grove_gated_pods"]) == (1, 0)
        code, took = await operator.end()
        assert (code, took < SOON) == (0, True)
        assert {line["level"] for line in operator.lines} == {"info"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_stop_signal_releases_the_lease(
    operator_account: Account, client: Client, namespace: str, tmp_path: Path, number: signal.Signals
) -> None:
    election = configuration(leaderElection=PATIENT_ELECTION)
    async with running(tmp_path, operator_account.kubeconfig, election, "--namespace", namespace) as operator:
        await operator.hear("working")
        assert await holder(client, namespace)
        code, took = await operator.end(number)
        assert (code, took < SOON) == (0, True)
        assert await holder(client, namespace) in ("", None)


async def test_next_operator_finishes_interrupted_creation(
    operator_account: Account, client: Client, namespace: str, tmp_path: Path
) -> None:
    body = pod_clique_set("many")
    body["spec"]["replicas"] = 30
    async with running(tmp_path, operator_account.kubeconfig, configuration()) as operator:
        await operator.hear("working")
        await create(client, body, namespace)
        pods = Cache(PODS, Pod, namespace=namespace)
        await seen(client, pods, lambda found: len(found) > 0)
        code, took = await operator.end()
        assert (code, took < SOON) == (0, True)
        assert operator.lines[-1]["message"] == "stopped"
    async with running(tmp_path, operator_account.kubeconfig, configuration()):
        sets = Cache(resource_of(PodCliqueSet.KIND), PodCliqueSet, namespace=namespace)
        await seen(client, sets, lambda found: is_available(found.get(namespace, "many")))


async def test_follower_takes_over_from_killed_leader(
    operator_account: Account, client: Client, namespace: str, tmp_path: Path
) -> None:
    election = configuration(leaderElection={**QUICK_ELECTION, "resourceNamespace": namespace})
    async with running(tmp_path, operator_account.kubeconfig, election) as leader:
        await leader.hear("working")
        async with running(tmp_path, operator_account.kubeconfig, election) as follower:
            await follower.hear("following")
            await hand_over(client, namespace, leader, follower)


async def hand_over(
    client: Client, namespace: str, leader: OperatorProcess, follower: OperatorProcess
) -> None:
    await follower.hear("certificate loaded")
    await follower.until_ready()
    assert (await follower.metrics())["grove_leader"] == 0
    await make_available(client, namespace, "first")
    code, _ = await leader.end(signal.SIGKILL)
    assert code == -signal.SIGKILL
    await follower.hear("working")
    await make_available(client, namespace, "second")
    await follower.until_metrics(grove_leader=1, grove_gang_ready_seconds_count=1)


async def test_leader_exits_when_its_lease_is_taken(
    operator_account: Account, client: Client, namespace: str, tmp_path: Path
) -> None:
    election = configuration(leaderElection=PATIENT_ELECTION)
    async with running(tmp_path, operator_account.kubeconfig, election, "--namespace", namespace) as operator:
        await operator.hear("working")
        taken = {"spec": {"holderIdentity": "robber"}}
        await client.patch(LEASES, LEASE, taken, namespace=namespace, as_type=Lease)
        assert await operator.ended() == 6
        assert operator.lines[-1]["reason"] == "no longer the leader: robber holds the lease"
        assert await holder(client, namespace) == "robber"


def kubeconfig_through(proxy: Config, account: Account, folder: Path) -> Path:
    """A kubeconfig that reaches the same cluster through the proxy of the test."""
    file = folder / "kubeconfig"
    file.write_text(account.kubeconfig.read_text().replace(account.config.server, proxy.server))
    return file


async def test_operator_waits_for_unreachable_api_server(
    cluster: LocalCluster, operator_account: Account, tmp_path: Path
) -> None:
    async with wired(cluster) as (wire, proxy):
        wire.is_down = True
        kubeconfig = kubeconfig_through(proxy, operator_account, tmp_path)
        async with running(tmp_path, kubeconfig, configuration()) as operator:
            await operator.hear("watch interrupted", key="podcliquesets.grove.io")
            assert (await operator.probe("/healthz"))[0] == 200
            status, words = await operator.probe("/readyz")
            assert status == 503
            assert "podcliquesets.grove.io" in words
            wire.is_down = False
            await operator.hear("working")
            await operator.hear("certificate loaded")
            await operator.until_ready()


async def test_operator_stops_in_time_without_api_server(
    cluster: LocalCluster, operator_account: Account, client: Client, namespace: str, tmp_path: Path
) -> None:
    election = configuration(leaderElection=PATIENT_ELECTION)
    async with wired(cluster) as (wire, proxy):
        kubeconfig = kubeconfig_through(proxy, operator_account, tmp_path)
        async with running(tmp_path, kubeconfig, election, "--namespace", namespace) as operator:
            await operator.hear("working")
            wire.is_down = True
            wire.cut()
            await operator.hear("watch interrupted")
            code, took = await operator.end()
            assert (code, took < SOON) == (0, True)
            assert [line["message"] for line in operator.lines][-1] == "stopped"


async def test_operator_waits_for_crds_and_logs_the_command(clusters: Clusters, tmp_path: Path) -> None:
    bare = await clusters.start("bare")
    election = configuration(leaderElection=PATIENT_ELECTION)
    async with (
        Client(config.load(bare.kubeconfig)) as client,
        running(tmp_path, (await operator_account_of(bare)).kubeconfig, election) as operator,
    ):
        line = await operator.hear("CRDs are missing")
        assert "grove crds | kubectl apply --server-side -f -" in line["reason"]
        status, words = await operator.probe("/readyz")
        assert (status, words.startswith("waiting for podcliquesets.grove.io")) == (503, True)
        for definition in crd.all_definitions():
            await apply(client, definition)
            await established(client, definition["metadata"]["name"])
        await operator.hear("working")
        await operator.hear("certificate loaded")
        await operator.until_ready()


def busy_port(place: str, port: int) -> dict[str, Any]:
    servers = {"healthProbes": HERE, "metrics": HERE, "webhooks": HERE}
    return {"server": {**servers, place: {**HERE, "port": port}}}


@pytest.mark.parametrize("place", ["healthProbes", "metrics", "webhooks"])
async def test_busy_port_is_reported_in_one_line(
    operator_account: Account, tmp_path: Path, place: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with running(tmp_path, operator_account.kubeconfig, busy_port(place, port)) as operator:
            _, stderr = await operator.process.communicate()
    assert operator.process.returncode == 4
    last_line = stderr.decode().splitlines()[-1]
    assert last_line == (
        f"grove: server.{place}.port: cannot listen on 127.0.0.1:{port} (Address already in use): "
        "choose another port, or 0 for any free one"
    )


async def test_debug_endpoint_lists_tasks(operator_account: Account, tmp_path: Path) -> None:
    debugging = {"enableProfiling": True, "pprofBindPort": 0}
    async with running(tmp_path, operator_account.kubeconfig, configuration(debugging=debugging)) as operator:
        status, tasks = await operator.get("debugging.pprofBindPort", "/debug/tasks")
        assert status == 200
        assert "reflector.py" in tasks


async def test_automatic_mnnvl_without_driver_has_own_exit_code(
    operator_account: Account, client: Client, namespace: str, tmp_path: Path
) -> None:
    wanted = configuration(network={"autoMNNVLEnabled": True})
    async with running(tmp_path, operator_account.kubeconfig, wanted) as operator:
        said = await operator.hear("MNNVL preflight check failed", level="error")
        assert "ComputeDomain CRD (computedomains.resource.nvidia.com) is missing" in said["reason"]
        assert "install the NVIDIA DRA driver, or disable" in said["reason"]
        assert await operator.process.wait() == 7
    lenient = configuration(network={"autoMNNVLEnabled": True, "autoMNNVLPreflight": "warn"})
    async with running(tmp_path, operator_account.kubeconfig, lenient) as operator:
        said = await operator.hear("MNNVL preflight check failed", level="warning")
        assert "ComputeDomain CRD (computedomains.resource.nvidia.com) is missing" in said["reason"]
        await operator.hear("working")
    await apply(client, definition())
    await established(client, definition()["metadata"]["name"])
    try:
        async with running(tmp_path, operator_account.kubeconfig, wanted) as operator:
            await operator.hear("MNNVL preflight check passed")
            warnings = [line["reason"] for line in operator.lines if line["level"] == "warning"]
            for missing in (
                "DeviceClass compute-domain-default-channel",
                "no ResourceSlice of compute-domain",
            ):
                assert any(reason.startswith(missing) for reason in warnings), warnings  # P5
            await operator.hear("working")
    finally:
        await removed(client, definition()["metadata"]["name"])
