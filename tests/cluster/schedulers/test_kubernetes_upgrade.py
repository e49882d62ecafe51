"""Upgrades of Kubernetes from 1.36 to 1.37 with gang scheduling: 1.37 cannot decode the PodGroups of 1.36."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, LEASES, PODS
from grove.local.cluster import lifecycle
from grove.operator.caches.resources import external_resource
from grove.schedulers.kube_podgroups import V1Alpha2, V1Beta1
from tests.chart import AWARE, operator_account_of
from tests.cluster.chart.job_runner import run
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import CLIQUES, SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.operator.support.world import World, watching
from tests.cluster.schedulers.native import IN_TREE, gang_scheduling, install_crds
from tests.clusters import Clusters, needs_kubernetes, programs
from tests.namespaces import make_namespace
from tests.pages import block, section
from tests.shared import ROOT

ALPHA, BETA = external_resource(V1Alpha2.kind), external_resource(V1Beta1.kind)
PAGE = "docs/kubernetes-upgrade.md"
LEASE = "grove-operator-leader-election"
NAME = "upgrade"
REPAIRER = "repairer"

pytestmark = [
    pytest.mark.cluster,
    needs_kubernetes("1.36", "1.37"),
]


@asynccontextmanager
async def cluster_to_upgrade(clusters: Clusters) -> AsyncIterator[tuple[World, Path]]:
    """A cluster of 1.36 with our CRDs; the world's watches survive the upgrade. And its kubeconfig."""
    cluster = await clusters.start(NAME, nodes=2, shape="1x1x1x2", **gang_scheduling("1.36"))
    async with Client(config.load(cluster.kubeconfig)) as client:
        await install_crds(client)
        await make_namespace(client, NAME)
        account = await operator_account_of(cluster, AWARE)
        async with watching(client, account.config, NAME) as world:
            yield world, cluster.kubeconfig


async def upgrade(clusters: Clusters) -> None:
    await asyncio.to_thread(lifecycle.down, clusters.state(NAME))
    await clusters.start(NAME, nodes=2, shape="1x1x1x2", **gang_scheduling("1.37"))


async def start_gangs(world: World) -> None:
    await world.create(SETS, workload("wl", clique("a", 3, 2), replicas=2))
    await world.until_ready()


def uids(world: World) -> dict[str, str]:
    return {pod.name: pod.uid for pod in world.pods()}


def named_groups(world: World) -> set[str]:
    return {pod.spec["schedulingGroup"]["podGroupName"] for pod in world.pods()}


async def a_plain_pod_is_scheduled(world: World) -> None:
    body = {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "main", "image": "model:1"}]}}
    await world.create(PODS, {"apiVersion": "v1", "kind": "Pod", **body})
    await world.until(lambda: world.get(PODS, "plain").spec.get("nodeName"), "a node for a plain pod")
    await world.delete(PODS, "plain", grace_seconds=0)


async def living_gangs_have_beta_groups(world: World, before: dict[str, str], groups: set[str]) -> None:
    """The groups of v1beta1 have the old names, no pod was replaced, and a new pod joins its group."""
    await world.watch(BETA)
    await world.until(lambda: set(world.names(BETA)) == groups, "groups of the same names")
    assert uids(world) == before
    assert named_groups(world) == groups
    await world.delete(PODS, next(iter(before)), grace_seconds=0)
    await world.until(lambda: uids(world).keys() - before.keys(), "a replacement")
    await world.until(lambda: all(pod.spec.get("nodeName") for pod in world.pods()), "a node for it")
    assert named_groups(world) == groups == set(world.names(BETA))


async def test_prepared_upgrade_keeps_pods_and_group_names(clusters: Clusters) -> None:
    async with cluster_to_upgrade(clusters) as (world, kubeconfig):
        async with operating(world, backends=IN_TREE):
            await start_gangs(world)
        before, groups = uids(world), named_groups(world)
        assert len(groups) == 2
        await _refused_while_an_operator_leads(world.client, kubeconfig)
        await _create_foreign_group(world.client)
        (command,) = (line for line in block(section(PAGE, "Before the upgrade")) if line.startswith("grove"))
        code, output = await run(command.split()[1:], kubeconfig)
        foreign = "podgroup default/other is not of this operator: delete it before the upgrade as well"
        deleted = [f"podgroup {NAME}/{name} deleted" for name in groups]
        assert (code, sorted(output.splitlines())) == (1, sorted([foreign, *deleted]))
        await world.client.delete(ALPHA, "other", namespace="default", as_type=Object)
        assert await run(command.split()[1:], kubeconfig) == (0, "")
        await upgrade(clusters)
        await a_plain_pod_is_scheduled(world)
        async with operating(world, backends=IN_TREE):
            await living_gangs_have_beta_groups(world, before, groups)
        assert await run(command.split()[1:], kubeconfig) == (0, ""), "v1alpha2 is not served any more"


async def _refused_while_an_operator_leads(client: Client, kubeconfig: Path) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    spec = {"holderIdentity": "operator-1", "leaseDurationSeconds": 15, "renewTime": now}
    body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": {"name": LEASE}, "spec": spec}
    await client.create(LEASES, body, namespace=NAME, as_type=Object)
    code, output = await run(["delete-podgroups"], kubeconfig)
    assert code == 1
    assert f"operator-1 holds lease {NAME}/{LEASE}" in " ".join(output.split())
    assert len((await client.list(ALPHA, as_type=Object)).items) == 2, "nothing is deleted"
    released = {"spec": {"holderIdentity": ""}}
    await client.patch(LEASES, LEASE, released, namespace=NAME, as_type=Object)


async def _create_foreign_group(client: Client) -> None:
    spec = {"schedulingPolicy": {"basic": {}}}
    body = {"apiVersion": ALPHA.api_version, "kind": ALPHA.kind, "metadata": {"name": "other"}, "spec": spec}
    await client.create(ALPHA, body, namespace="default", as_type=Object)


async def test_remedy_after_unprepared_upgrade(clusters: Clusters, tmp_path: Path) -> None:
    """The operator runs all the time."""
    async with (
        cluster_to_upgrade(clusters) as (world, kubeconfig),
        operating(world, backends=IN_TREE) as operator,
    ):
        await start_gangs(world)
        before, groups = uids(world), named_groups(world)
        upgrading = asyncio.create_task(upgrade(clusters))
        await world.until(lambda: all(PAGE in each for each in _errors(world)), "the reason on every clique")
        await _grant_documented_rights(world.client)
        calls = len(operator.recorder.calls)
        await asyncio.to_thread(_run_remedy, kubeconfig, tmp_path)
        await upgrading
        await a_plain_pod_is_scheduled(world)
        await living_gangs_have_beta_groups(world, before, groups)
        await world.until(lambda: not any(_errors(world)), "no errors")
        assert calls < 1000, "no hot loop while groups cannot be listed"


def _errors(world: World) -> list[str]:
    """The errors of each clique, as text."""
    return [str(each.status.get("lastErrors") or "") for each in world.all(CLIQUES)]


async def _grant_documented_rights(client: Client) -> None:
    role = yaml.safe_load((ROOT / "docs/examples/podgroup-remedy.yaml").read_text())
    group, name = CLUSTER_ROLES.group, role["metadata"]["name"]
    await client.create(CLUSTER_ROLES, role, as_type=Object)
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": REPAIRER}],
    }
    await client.create(CLUSTER_ROLE_BINDINGS, binding, as_type=Object)


def _run_remedy(kubeconfig: Path, folder: Path) -> None:
    """The commands of the page, as a user with nothing but the documented rights."""
    limited = yaml.safe_load(kubeconfig.read_text())
    limited["users"][0]["user"]["as"] = REPAIRER
    (folder / "kubeconfig").write_text(yaml.safe_dump(limited))
    path = f"{programs('1.37')['kubectl'].parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "KUBECONFIG": str(folder / "kubeconfig"), "HOME": str(folder)}
    script = "\n".join(["set -e", *block(section(PAGE, "After an upgrade without it"))])
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
