"""`grove logs` on the real API server, which reads logs from a server of the kubelet's log API."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from grove.api.naming import labels
from grove.cli.exit_codes import ExitCode
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, Resource
from tests.cluster.cli.commands import GROVE, grove, live, tenant_kubeconfig
from tests.cluster.cli.kubelet_logs import KubeletLogs, serving_logs
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS, AnyObject
from tests.cluster.operator.support.processes import seen
from tests.cluster.operator.support.workloads import clique, workload
from tests.terminal import on_terminal

FIRST = {
    "demo-0-a-x": [
        "2026-01-01T00:00:01.5Z one",
        "2026-01-01T00:00:04Z four \x1b[31mred\x1b[0m\x1b]0;title\x07",
    ],
    "demo-0-b-y": ["2026-01-01T00:00:02Z two", "2026-01-01T01:00:03.123456789+01:00 three"],
}
UNSAFE = "\N{REPLACEMENT CHARACTER}"
MERGED = """\
[demo-0-a-x/main] one
[demo-0-b-y/main] two
[demo-0-b-y/main] three
[demo-0-a-x/main] four \x1b[31mred\x1b[0m\x1b]0;title\x07
"""


async def create_part(client: Client, namespace: str, kind: Resource, name: str, spec: Any) -> None:
    """A part of set demo, as an operator would create it."""
    metadata = {"name": name, "labels": labels.managed("demo")}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
    await client.create(kind, body, namespace=namespace, as_type=Object)


async def create_pod(client: Client, namespace: str, name: str, **annotations: str) -> None:
    """A pod of set demo and of the clique that its name begins with."""
    own = {labels.CLIQUE: name.rpartition("-")[0], labels.GANG: "demo-0"}
    container = {"name": "main", "image": "model:1"}
    body = {
        "metadata": {"name": name, "labels": labels.managed("demo") | own, "annotations": annotations},
        "spec": {"containers": [container, {**container, "name": "side"}]},
    }
    await client.create(PODS, body, namespace=namespace, as_type=Object)


async def until_running(client: Client, namespace: str, *names: str) -> None:
    def running(pods: Cache[AnyObject]) -> bool:
        return all(
            (pod := pods.get(namespace, name)) and pod.status.get("phase") == "Running" for name in names
        )

    await seen(client, Cache(PODS, AnyObject, namespace=namespace), running)


@pytest.fixture
async def kubelets(client, cluster, crds, namespace) -> AsyncIterator[KubeletLogs]:
    """Set demo with two pods, and their logs."""
    await client.create(SETS, workload("demo", clique("a"), clique("b")), namespace=namespace, as_type=Object)
    await create_part(client, namespace, GANGS, "demo-0", {"podgroups": []})
    for name in ("demo-0-a", "demo-0-b"):
        await create_part(client, namespace, CLIQUES, name, clique(name)["spec"])
    await asyncio.gather(*(create_pod(client, namespace, name) for name in FIRST))
    async with serving_logs(client, cluster.state.pki) as logs:
        for name, lines in FIRST.items():
            await logs.add(name, *lines)
        await until_running(client, namespace, *FIRST)
        yield logs


async def test_logs_are_merged_by_time(client, cluster, kubelets, namespace, tmp_path):
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    await create_pod(client, namespace, "demo-0-a-z", **{"pod-ready.grove.local/delay": "10m"})
    whole, stamped, part, last, narrow, limited, wrong, side, nothing, unknown = await asyncio.gather(
        grove("logs", "demo", *where),
        grove("logs", "clique/demo-0-b", "--timestamps", *where),
        grove("logs", "demo-0-a-x", "--no-prefix", "--since", "90s", *where),
        grove("logs", "gang/demo-0", "--tail", "1", *where),
        asyncio.to_thread(on_terminal, "logs", "clique/demo-0-a", *where, columns=40),
        grove("logs", "demo", "--max-log-requests", "1", *where),
        grove("logs", "demo", "-c", "maim", *where),
        grove("logs", "clique/demo-0-b", "--all-containers", *where),
        grove("logs", "pod/demo-0-a-z", *where),
        grove("logs", "dem", *where),
    )
    late = "grove: no log yet: demo-0-a-z (has not started)\n"
    assert whole.err == late
    assert (whole.code, whole.out) == (0, MERGED)
    assert stamped.out == (
        "[demo-0-b-y/main] 2026-01-01T00:00:02Z two\n"
        "[demo-0-b-y/main] 2026-01-01T01:00:03.123456789+01:00 three\n"
    )
    assert part == (0, "".join(f"{line.partition(' ')[2]}\n" for line in FIRST["demo-0-a-x"]), "")
    assert last.out == "".join(MERGED.splitlines(keepends=True)[2:])
    assert narrow[1].splitlines()[:-1] == [
        "\x1b[36m[…-x/main]\x1b[0m one",
        f"\x1b[36m[…-x/main]\x1b[0m four \x1b[31mred\x1b[0m{UNSAFE}]0;title{UNSAFE}\x1b[0m",
    ]
    assert limited.err == (
        "grove: 2 logs would be read at once, more than 1: choose a part of the workload or one container, "
        "or use --max-log-requests 2\n"
    )
    assert wrong.err == "grove: --container maim: no pod has it: choose one of main, side\n"
    assert (side.code, side.out.count("main]")) == (1, 2)
    assert side.err.startswith("grove: demo-0-b-y/side: get pods/log ")
    assert nothing == (
        1,
        "",
        f"grove: Pod {namespace}/demo-0-a-z has no log yet: demo-0-a-z (has not started)\n",
    )
    assert unknown.err == f"grove: no workload dem in namespace {namespace}: did you mean demo?\n"
    assert {request.query.get("sinceSeconds") for request in kubelets.requests} == {None, "90"}


async def test_previous_run_is_of_restarted_containers(client, cluster, kubelets, namespace):
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    kubelets.previous = {"demo-0-a-x": ["2026-01-01T00:00:00Z before"]}
    assert (await grove("logs", "demo", "-p", *where)).err == (
        f"grove: PodCliqueSet {namespace}/demo has no log yet: demo-0-a-x (no container has restarted), "
        "demo-0-b-y (no container has restarted)\n"
    )
    crashed = {"name": "main", "restartCount": 1, "image": "", "imageID": "", "ready": True}
    states = {"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}
    patch = {"status": {"containerStatuses": [crashed | states]}}
    await client.patch(PODS, "demo-0-a-x", patch, namespace=namespace, subresource="status", as_type=Object)
    assert (await grove("logs", "demo", "-p", *where)).out == "[demo-0-a-x/main] before\n"


async def test_followed_logs_include_later_pods_and_end(client, cluster, kubelets, namespace):
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    kubelets.broken = {"demo-0-b-y"}
    async with live("logs", "demo", "-f", "--tail", "1", *where) as command:
        await command.until("[demo-0-b-y/main] three")  # its connection breaks now
        await kubelets.add("demo-0-a-x", "2026-01-01T00:00:05Z five")
        await command.until("[demo-0-a-x/main] five")
        await kubelets.add("demo-0-b-y", "2026-01-01T00:00:06Z six")
        await command.until("[demo-0-b-y/main] six")
        await kubelets.add("demo-0-a-z", *(f"2026-01-01T00:00:07Z later {i}" for i in range(12)))
        await create_pod(client, namespace, "demo-0-a-z")
        for i in range(12):
            assert await command.until("later") == f"[demo-0-a-z/main] later {i}\n"
        pods = (*FIRST, "demo-0-a-z")
        await kubelets.end(*pods)
        done = {"status": {"phase": "Succeeded"}}
        for name in pods:
            await client.patch(PODS, name, done, namespace=namespace, subresource="status", as_type=Object)
        code, err = await command.end()
    assert code == 0
    assert err == ""
    assert sum("three" in line for line in command.lines) == 1


async def test_followed_logs_end_with_the_object_or_ctrl_c(client, cluster, kubelets, namespace):
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    async with (
        live("logs", "demo", "-f", *where) as deleted,
        live("logs", "clique/demo-0-c", "-f", *where) as missing,
        live("logs", "demo-0-a-x", "-f", *where) as interrupted,
    ):
        await deleted.until("four")
        await interrupted.until("four")
        assert await interrupted.interrupt() == (130, "grove: interrupted\n")
        code, err = await missing.end()
        assert code == 1
        assert err == f"grove: no PodClique demo-0-c in namespace {namespace}: did you mean demo-0-b?\n"
        await client.delete(SETS, "demo", namespace=namespace, as_type=Object)
        await kubelets.end(*FIRST)
        assert await deleted.end() == (0, "")


async def test_closed_pipe_and_missing_right(client, cluster, kubelets, namespace, tmp_path):
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    reading, writing = os.pipe()
    os.close(reading)
    process = await asyncio.create_subprocess_exec(
        GROVE, "logs", "demo", "-f", *where, stdout=writing, stderr=asyncio.subprocess.PIPE
    )
    os.close(writing)
    _, err = await process.communicate()
    assert (process.returncode, err) == (ExitCode.CLOSED_PIPE, b"")
    rules: Any = [
        {"apiGroups": ["*"], "resources": ["pods", "podcliquesets"], "verbs": ["get", "list", "watch"]}
    ]
    tenant = await tenant_kubeconfig(client, cluster, namespace, tmp_path, rules)
    for options in ((), ("-f",)):
        code, out, said = await grove("logs", "demo", *options, "-n", namespace, "--kubeconfig", tenant)
        assert (code, out) == (1, "")
        assert 'cannot get resource "pods/log"' in said
        assert said.count("\n") == 1
