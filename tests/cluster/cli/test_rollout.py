"""`grove rollout` and `grove restart` on the real control plane, with an operator."""

from __future__ import annotations

import asyncio
import json

import pytest
import yaml

from grove.kube.client.resource import PODS
from tests.cluster.cli.test_inspection import grove, tenant_kubeconfig
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import small

NO_LEASE = "operator: no Lease none: none is installed, or it runs without leader election"
TIMEOUT = ("--timeout", "2m", "--lease", "none")


@pytest.fixture
def run(cluster, namespace):
    """Runs a command on the test's namespace."""

    async def run(*arguments: str) -> tuple[int | None, str, str]:
        return await grove(*arguments, "-n", namespace, "--kubeconfig", str(cluster.kubeconfig))

    return run


def image(tag: int) -> list[dict[str, object]]:
    path = "/spec/template/cliques/0/spec/podSpec/containers/0/image"
    return [{"op": "replace", "path": path, "value": f"model:{tag}"}]


async def test_rollout_is_followed_paused_and_resumed(world, run):
    await world.create(SETS, small("chat"))
    code, out, err = await run("rollout", "status", "chat", "--watch=false", "--lease", "none")
    assert (code, out) == (2, "PodCliqueSet chat: the operator has not seen the latest change yet\n")
    assert err.startswith(NO_LEASE)
    async with operating(world):
        code, out, err = await run("rollout", "status", "chat", *TIMEOUT)
        assert code == 0, err
        assert out.splitlines()[-1] == "PodCliqueSet chat: rolled out, 1 of 1 replicas are available"
        await assert_paused_and_resumed(world, run)


async def assert_paused_and_resumed(world, run) -> None:
    code, out, err = await run("rollout", "pause", "chat")
    assert (code, out, err) == (0, "PodCliqueSet chat paused\n", "")
    code, out, _ = await run("rollout", "pause", "chat")
    assert (code, out) == (0, "PodCliqueSet chat is already paused\n")
    before = set(world.names(PODS))
    await world.patch(SETS, "chat", image(2), kind="application/json-patch+json")
    code, out, err = await run("rollout", "status", "chat", "--timeout", "3s", "--lease", "none")
    assert code == 2
    assert out.splitlines()[-1].startswith(
        "PodCliqueSet chat: paused: grove rollout resume chat continues it; "
    )
    assert err.splitlines()[-1] == (
        "grove: the rollout is not complete within --timeout: run the command again"
    )
    assert set(world.names(PODS)) == before
    code, out, err = await run("rollout", "resume", "chat", "-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["name"] == "chat"
    code, out, err = await run("rollout", "status", "chat", *TIMEOUT, "-o", "yaml")
    assert code == 0, err
    shown = yaml.safe_load(out)
    assert (shown["phase"], shown["updatedReplicas"], shown["errors"]) == ("Complete", 1, [])
    assert len(set(world.names(PODS)) - before) == 1, "only the pod of the changed clique"


def pods_of(world, *cliques: str) -> dict[str, set[str]]:
    return {clique: {pod.name for pod in world.pods(clique=clique)} for clique in cliques}


ROUTER, FIRST, SECOND = ("chat-0-router",), ("chat-0-model-0-leader", "chat-0-model-0-worker"), (
    "chat-0-model-1-leader",
    "chat-0-model-1-worker",
)  # fmt: skip
EVERYTHING = (*ROUTER, *FIRST, *SECOND)


RESTARTS = [
    (("podgang/chat-0-model-0",), "replica 1 of group model in replica 0, 2 pods of 2 cliques", SECOND),
    (("chat",), "all replicas, 5 pods of 5 cliques", EVERYTHING),
]


async def test_restart_replaces_the_pods_of_the_unit(world, run):
    await world.create(SETS, small("chat"))
    async with operating(world):
        await world.until_ready()
        where = ("restart", "chat", "--replica", "0", "--clique", "router", "--dry-run")
        (_, as_json, _), (_, as_yaml, _) = await asyncio.gather(
            run(*where, "-o", "json"), run(*where, "-o", "yaml")
        )
        documents = [json.loads(as_json), yaml.safe_load(as_yaml)]
        assert [each.pop("request")[:2] for each in documents] == ["20", "20"]
        expected = {"namespace": world.namespace, "kind": "PodCliqueSet", "name": "chat", "dryRun": True}
        unit = {"unit": "clique router in replica 0", "cliques": ["chat-0-router"], "pods": 1}
        assert documents == [{**expected, **unit}] * 2
        for arguments, shown, restarted in RESTARTS:
            await assert_restarted(world, run, arguments, shown, restarted)


async def assert_restarted(world, run, arguments, shown, restarted) -> None:
    before = pods_of(world, *EVERYTHING)
    code, out, _ = await run("restart", *arguments, "--dry-run", "--lease", "none")
    assert (code, out) == (0, f"PodCliqueSet chat: {shown}: would be restarted (dry run)\n")
    assert pods_of(world, *EVERYTHING) == before
    code, out, _ = await run("restart", *arguments, "--lease", "none")
    assert code == 0
    assert out.splitlines() == [
        f"PodCliqueSet chat: {shown}: will be restarted, as by an update",
        f"follow it with: grove rollout status chat -n {world.namespace}",
    ]
    code, out, err = await run("rollout", "status", "chat", *TIMEOUT)
    assert code == 0, (out, err)
    await world.until_ready()
    after = pods_of(world, *EVERYTHING)
    assert {name for name in EVERYTHING if not before[name] & after[name]} == set(restarted)
    assert {name for name in EVERYTHING if before[name] != after[name]} == set(restarted)


WRONG = {
    ("chart",): "no workload chart in namespace {namespace}: did you mean chat?",
    ("podclique/x",): "no PodClique x in namespace {namespace}: grove get -A lists all sets",
    ("chat", "--replica", "1"): "PodCliqueSet chat has no replica 1: it has 1, from 0",
    ("chat", "--clique", "rooter"): (
        "PodCliqueSet chat: no clique or group rooter: choose one of router, leader, worker, model"
    ),
    ("chat",): "PodCliqueSet chat: all replicas: nothing to restart: grove tree chat shows it",
    ("manual",): (
        "PodCliqueSet manual has the update strategy OnDelete, with which the operator replaces only pods "
        "that you delete: kubectl delete pod, or change spec.updateStrategy.type"
    ),
}


async def test_restart_of_what_cannot_be_restarted(client, crds, namespace, run):
    await client.create(SETS, small("chat"), namespace=namespace, as_type=dict)
    manual = small("manual")
    manual["spec"]["updateStrategy"] = {"type": "OnDelete"}
    await client.create(SETS, manual, namespace=namespace, as_type=dict)
    answers = await asyncio.gather(*(run("restart", *arguments) for arguments in WRONG))
    for problem, answer in zip(WRONG.values(), answers, strict=True):
        assert answer == (1, "", f"grove: {problem.format(namespace=namespace)}\n")


async def test_actions_without_rights_name_the_right(client, cluster, crds, namespace, tmp_path):
    await client.create(SETS, small("chat"), namespace=namespace, as_type=dict)
    kubeconfig = await tenant_kubeconfig(client, cluster, namespace, tmp_path)
    where = ("-n", namespace, "--kubeconfig", kubeconfig)
    (paused, unseen) = await asyncio.gather(
        grove("rollout", "pause", "chat", *where),
        grove("rollout", "status", "chat", "-n", "default", "--kubeconfig", kubeconfig),
    )
    for code, out, err in (paused, unseen):
        assert (code, out) == (1, "")
        assert err.startswith("grove: ")
        assert "(403 Forbidden)" in err
        assert err.count("\n") == 1
