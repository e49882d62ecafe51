"""`grove plan` and `grove snapshot` on a real cluster: admission by the API server, a running set, and users
with few rights."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import yaml

from grove.cluster_state.snapshot_file import read_file
from grove.kube.client.resource import NODES, PODS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import Account
from tests.cluster.operator.placement.placed_gangs import PLACING
from tests.cluster.operator.process.test_get_and_tree import grove
from tests.cluster.operator.scheduling.test_placement import gpus
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import Body, workload
from tests.service_accounts import request_token


@pytest.fixture
def account(placing_account: Account) -> Account:
    return placing_account


@pytest.fixture
def here(world: World, cluster: LocalCluster) -> tuple[str, ...]:
    return ("-n", world.namespace, "--kubeconfig", str(cluster.kubeconfig))


def written(folder: Path, body: Body) -> str:
    file = folder / "set.yaml"
    file.write_text(yaml.safe_dump(body))
    return str(file)


async def test_api_server_rejects_a_planned_set(world: World, here, tmp_path: Path) -> None:
    body = workload("mine", gpus("worker", 2, 8))
    body["spec"]["replicas"] = "many"
    planned = await grove("plan", "-f", written(tmp_path, body), *here)
    assert planned.returncode == 1
    assert "admission  rejected by the API server (dry run): PodCliqueSet.grove.io" in planned.stdout
    assert world.names(SETS) == []


async def test_running_set_is_planned_and_nothing_is_written(world: World, here, tmp_path: Path) -> None:
    body = workload("mine", gpus("worker", 2, 8))
    file = written(tmp_path, body)
    async with operating(world, backends=PLACING):
        first = await grove("plan", "-f", file, *here)
        assert (first.returncode, first.stderr, world.names(SETS)) == (0, "", [])
        assert "admission  allowed by the API server (dry run)" in first.stdout
        await world.create(SETS, body)
        await world.until_ready()
        versions = {found.name: found.metadata.resource_version for found in world.all(PODS)}

        again = await grove("plan", "-f", file, *here)
        assert again.stdout.startswith(f"PodCliqueSet {world.namespace}/mine  fits, unchanged\n"), (
            again.stdout
        )
        larger = await grove("plan", "mine", "--replicas", "9", "--max", "-o", "json", *here)
        assert larger.returncode == 2
        (plan,) = json.loads(larger.stdout)["plans"]
        assert plan["maxReplicas"] == 8
        body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = "model:2"
        update = await grove("plan", "-f", written(tmp_path, body), *here)
        assert "update  2 units replaced, at least 0 of 1 replica available" in update.stdout
        assert {found.name: found.metadata.resource_version for found in world.all(PODS)} == versions


async def test_snapshot_has_what_a_plan_reads(world: World, here, tmp_path: Path) -> None:
    body = workload("mine", gpus("worker", 2, 8))
    container = body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]
    container["env"] = [{"name": "TOKEN", "value": "hunter2"}]
    async with operating(world, backends=PLACING):
        await world.create(SETS, body)
        await world.until_ready()
        taken = await grove("snapshot", *here[2:])
    assert (taken.returncode, taken.stderr) == (0, "")
    assert "hunter2" not in taken.stdout
    file = tmp_path / "cluster.json"
    file.write_text(taken.stdout)
    state = read_file(file)
    assert state.server_version.startswith("v1.")
    assert len(state.kind(NODES).items) == 16
    again = await grove("plan", "-f", written(tmp_path, body), "--snapshot", str(file), "-n", world.namespace)
    assert (again.returncode, again.stderr) == (0, "")
    # The file has no defaults of the schema; nothing is written for them.
    assert again.stdout.startswith(f"PodCliqueSet {world.namespace}/mine  fits, ")
    assert not any(verb in again.stdout for verb in ("creates", "changes", "deletes", "gang"))


async def test_rights_on_one_namespace_leave_it_unknown(
    world: World, cluster: LocalCluster, tmp_path: Path
) -> None:
    await reader(world)
    user = await account_of(world, cluster, "reader")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(user)
    here = ("-n", world.namespace, "--kubeconfig", str(kubeconfig))
    planned = await grove("plan", "-f", written(tmp_path, workload("mine", gpus("worker", 2, 8))), *here)
    assert (planned.returncode, planned.stderr) == (3, "")
    assert planned.stdout.startswith(f"PodCliqueSet {world.namespace}/mine  cannot be known, create\n")
    assert "admission  allowed by the rules of this grove" in planned.stdout
    nodes = "not read  no right to list them in the whole cluster (403 Forbidden): nodes, "
    assert nodes in planned.stdout
    assert f"not read  only those of namespace {world.namespace} are known: " in planned.stdout
    taken = await grove("snapshot", *here)
    assert taken.returncode == 0
    assert f"grove: not in the snapshot: {nodes.removeprefix('not read  ')}" in taken.stderr
    kinds = msgspec.json.decode(taken.stdout)["kinds"]
    assert {each["plural"]: each.get("namespace") for each in kinds}["pods"] == world.namespace


async def reader(world: World) -> None:
    """A ServiceAccount that may read everything in the namespace."""
    name = {"metadata": {"name": "reader"}}
    await world.create(SERVICE_ACCOUNTS, dict(name))
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    await world.create(ROLES, {**name, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": world.namespace}
    role = {"apiGroup": ROLES.group, "kind": "Role", "name": "reader"}
    await world.create(ROLE_BINDINGS, {**name, "subjects": [subject], "roleRef": role})


async def account_of(world: World, cluster: LocalCluster, name: str) -> str:
    """A kubeconfig of a ServiceAccount."""
    token = await request_token(world.client, world.namespace, name)
    body = yaml.safe_load(cluster.kubeconfig.read_text())
    body["users"] = [{"name": each["name"], "user": {"token": token}} for each in body["users"]]
    return yaml.safe_dump(body)
