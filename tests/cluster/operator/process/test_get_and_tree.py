"""`grove get` and `grove tree` on a real cluster: their output, and their messages when objects, the cluster
or the CRDs are missing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from grove.kube.client.resource import PODS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, Resource
from grove.kube.leader.elector import Elector
from grove.local.cluster.lifecycle import LocalCluster
from tests import chart
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import small
from tests.kube.auth.kubeconfigs import kubeconfig, write
from tests.terminal import GROVE, on_terminal


async def grove(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [GROVE, *arguments]
    variables = {**os.environ, **environment}
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False, env=variables
    )


async def test_get_and_tree_show_a_ready_set(world: World, cluster: LocalCluster) -> None:
    here = ("-n", world.namespace, "--kubeconfig", str(cluster.kubeconfig))
    async with operating(world):
        await world.create(SETS, small())
        await world.until_ready()

        listed = await grove("get", *here, "--lease", "another")
        assert (listed.returncode, listed.stderr.count("\n")) == (0, 1)
        assert listed.stderr.startswith("operator: no Lease another: ")
        assert [[*line.split()[:5], *line.split()[6:]] for line in listed.stdout.splitlines()] == [
            ["NAME", "AVAILABLE", "GANGS", "PODS", "TOPOLOGY", "ERRORS"],
            ["small", "1/1", "2/2", "5/5", "-", "-"],
        ]
        everywhere = await grove("get", "-A", *here[2:])
        assert re.search(rf"^{world.namespace} +small +1/1", everywhere.stdout, re.MULTILINE)

        shown = await grove("tree", "small", *here)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.startswith("small  1/1 available\n└─ replica 0  Running, gang small-0\n")
        assert {pod.name for pod in world.all(PODS)} == set(
            re.findall(r"small-\S+-[a-z0-9]{8}\b", shown.stdout)
        )
        assert "\x1b" not in shown.stdout
        brief = await grove("tree", "--no-pods", *here)
        assert len(brief.stdout.splitlines()) == len(shown.stdout.splitlines()) - 5

        (item,) = json.loads((await grove("tree", "small", "-o", "json", *here)).stdout)["items"]
        assert (item["name"], item["available"], item["members"][0]["groups"][0]["replicas"]) == (
            "small",
            1,
            2,
        )
        code, narrow = await asyncio.to_thread(on_terminal, "tree", *here, columns=40)
        assert code == 0
        assert "\x1b[32m" in narrow
        plain = re.sub(r"\x1b\[[0-9;]*m", "", narrow).splitlines()
        assert len(plain) == len(shown.stdout.splitlines())
        assert max(map(len, plain)) <= 40


async def test_get_and_tree_without_sets(world: World, cluster: LocalCluster) -> None:
    here = ("-n", world.namespace, "--kubeconfig", str(cluster.kubeconfig))
    empty = await grove("get", *here)
    assert (empty.returncode, empty.stdout) == (0, "")
    words = "no PodCliqueSets in this namespace: grove get -A lists those of all namespaces\n"
    assert empty.stderr.startswith(words)
    found = json.loads((await grove("get", "-o", "json", "--lease", "another", *here)).stdout)
    assert (found["items"], found["operator"]["alive"]) == ([], False)
    missing = await grove("tree", "absent", *here)
    assert (missing.returncode, missing.stdout) == (1, "")
    words = f"grove: no PodCliqueSet absent in namespace {world.namespace}: grove get -A lists all sets\n"
    assert missing.stderr == words


async def test_get_says_whether_an_operator_leads(world: World, cluster: LocalCluster) -> None:
    here = ("-n", world.namespace, "--kubeconfig", str(cluster.kubeconfig), "--lease", "mine")
    elector = Elector(world.client, world.namespace, "mine", "me")
    async with elector.lead():
        alive = json.loads((await grove("get", "-o", "json", *here)).stdout)["operator"]
        assert (alive["alive"], alive["lease"], alive["holder"]) == (True, f"{world.namespace}/mine", "me")
        assert alive["renewedSecondsAgo"] < 15
        shown = (await grove("get", *here)).stderr
        assert f"operator: me leads, and renewed Lease {world.namespace}/mine " in shown
    shown = (await grove("get", *here)).stderr
    assert f"operator: none leads, nothing is reconciled: Lease {world.namespace}/mine was released " in shown


async def test_get_by_a_user_who_may_not_list_leases(world: World, cluster: LocalCluster) -> None:
    """The rest is shown."""
    rule = {"apiGroups": ["grove.io", "scheduler.grove.io", ""], "resources": ["*"], "verbs": ["list"]}
    account = {"kind": "ServiceAccount", "name": "viewer", "namespace": world.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "viewer"}
    rights = [
        object_of(SERVICE_ACCOUNTS, world.namespace),
        object_of(ROLES, world.namespace, rules=[rule]),
        object_of(ROLE_BINDINGS, world.namespace, subjects=[account], roleRef=role),
    ]
    for right in rights:
        await chart.apply(world.client, right)
    await chart.until_granted(world.client, rights)
    viewer = await chart.account(world.client, cluster, world.namespace, "viewer")
    listed = await grove("get", "--kubeconfig", str(viewer.kubeconfig), "-o", "json")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert json.loads(listed.stdout) == {"items": [], "operator": None}


def object_of(resource: Resource, namespace: str, **fields: object) -> dict[str, Any]:
    meta = {"name": "viewer", "namespace": namespace}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **fields}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("get", "-A", "-n", "x"), "--namespace x and --all-namespaces exclude each other: use one of them"),
        (("tree", "web", "-A"), "web: a name needs a namespace: replace --all-namespaces with --namespace"),
        (("get", "--kubeconfig", "/nowhere"), "kubeconfig /nowhere does not exist: check the path"),
    ],
)
async def test_contradictory_arguments_are_refused(arguments: tuple[str, ...], words: str) -> None:
    answer = await grove(*arguments)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == f"grove: {words}\n"


async def test_tree_without_reachable_cluster_names_it(tmp_path: Path) -> None:
    file = write(tmp_path / "config", kubeconfig(cluster={"server": "https://127.0.0.1:9"}))
    answer = await grove("tree", KUBECONFIG=str(file))
    assert answer.returncode == 1
    assert answer.stderr.startswith("grove: ")
    assert "127.0.0.1:9" in answer.stderr
    assert answer.stderr.count("\n") == 1


async def test_get_without_crds_says_how_to_install_them(clusters) -> None:
    bare = await clusters.start("bare")
    answer = await grove("get", KUBECONFIG=str(bare.kubeconfig))
    assert answer.returncode == 1
    assert answer.stderr == (
        f"grove: {bare.server} does not serve PodCliqueSets: "
        "install the CRDs with grove crds | kubectl apply --server-side -f -\n"
    )
    missing = "grove: the cluster does not serve PodCliqueSets: install the CRDs with grove crds --apply\n"
    for command in (("rollout", "status", "x"), ("rollout", "pause", "x"), ("restart", "x")):
        answer = await grove(*command, KUBECONFIG=str(bare.kubeconfig))
        assert (answer.returncode, answer.stderr) == (1, missing), command
    answer = await grove("doctor", KUBECONFIG=str(bare.kubeconfig))
    assert answer.returncode == 1
    assert "\nfail     CRDs: not installed: podcliquesets.grove.io, " in answer.stdout
    assert "\n         do: grove crds --apply\n" in answer.stdout
    assert "\nunknown  admission: cannot be known: PodCliqueSets are not served\n" in answer.stdout
