"""`grove explain` and `grove topology` on the real control plane: rights on one namespace, and the watch."""

from __future__ import annotations

import asyncio
import json
import signal

from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES
from tests.cluster.cli.commands import GROVE, PATIENCE, grove, tenant_kubeconfig
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload


async def test_tenant_explains_a_set_of_the_own_namespace(client, cluster, crds, namespace, tmp_path):
    await client.create(SETS, workload("w", clique("a", 2)), namespace=namespace, as_type=Object)
    kubeconfig = await tenant_kubeconfig(client, cluster, namespace, tmp_path)
    where = ("-n", namespace, "--kubeconfig", kubeconfig)
    code, out, err = await grove("explain", "w", *where)
    assert code == 0, err
    assert out.startswith(f"PodCliqueSet {namespace}/w: 0/1 replicas available, no pods yet\n")
    forbidden, elsewhere = err.splitlines()
    assert forbidden.startswith(
        "grove: not seen: no right to list them in the whole cluster (403 Forbidden): nodes, "
    )
    assert elsewhere.startswith(f"grove: not seen: only those of namespace {namespace} are known: ")
    assert ", pods, " in elsewhere
    code, out, err = await grove("explain", "x", *where)
    assert (code, out) == (1, "")
    assert err == f"grove: no workload x in namespace {namespace}: grove get -A lists all sets\n"
    code, out, err = await grove("topology", *where[2:])
    assert (code, out) == (1, "")
    assert err.startswith("grove: no right to list nodes in the whole cluster (403 Forbidden): ")
    assert err.count("\n") == 1


async def test_missing_operator_is_the_first_reason(client, cluster, crds, namespace):
    body = workload("w", clique("a", 1, pod={"containers": [{"name": "main", "image": "m"}]}))
    await client.create(SETS, body, namespace=namespace, as_type=Object)
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    code, out, _ = await grove("explain", "w", *where, "--lease", "no-such-lease", "-o", "json")
    assert code == 0
    assert [each["code"] for each in json.loads(out)["reasons"]][:1] == ["NoOperatorLeading"]


async def test_watch_shows_a_cordon_as_it_happens(client, cluster, crds):
    name = (await client.list(NODES, as_type=Object)).items[0].metadata.name
    process = await asyncio.create_subprocess_exec(
        GROVE, "topology", "--watch", "--kubeconfig", str(cluster.kubeconfig), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None

    async def until(words: str) -> str:
        assert process.stdout is not None
        while words not in (line := (await process.stdout.readline()).decode()):
            assert line, f"ended before {words}"
        return line

    try:
        async with asyncio.timeout(PATIENCE):
            assert "free" in await until("cluster")
            for unschedulable, words in ((True, ", cordoned"), (False, "8/8 free")):
                patch = {"spec": {"unschedulable": unschedulable}}
                await client.patch(NODES, name, patch, as_type=Object)
                line = await until(f"node {name}: ")
                assert words in line
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await client.patch(NODES, name, {"spec": {"unschedulable": False}}, as_type=Object)
