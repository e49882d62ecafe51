"""`grove get --watch` and `grove tree --watch` on the real control plane, and their messages."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import ROLE_BINDINGS, ROLES
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.operator.cli.outputs import batch, grove
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.terminal import GROVE

PATIENCE = 90.0
TENANT, RBAC = "tenant-who-may-list", "rbac.authorization.k8s.io"


class Running:
    """A command that goes on."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def until(self, words: str) -> str:
        """The first line from now on with these words."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while words not in (line := (await self.process.stdout.readline()).decode()):
                assert line, f"ended before {words}"
            return line


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[Running]:
    """A command, which is interrupted after the block and must end with exit code 130."""
    process = await asyncio.create_subprocess_exec(GROVE, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        yield Running(process)
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 130
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_changes_of_sets_are_shown_as_they_happen(world: World, cluster: LocalCluster) -> None:
    here = ("-n", world.namespace, "--kubeconfig", str(cluster.kubeconfig))
    async with operating(world):
        await world.create(SETS, workload("w", clique("a", 1)))
        await world.until_ready()
        async with (
            running("get", "--watch", *here) as table,
            running("tree", "w", "-w", *here) as tree,
            running("tree", "w", "-w", "-o", "name", *here) as names,
        ):
            assert (await table.until("NAME")).split()[:2] == ["NAME", "AVAILABLE"]
            assert (await table.until("w ")).split()[:4] == ["w", "1/1", "1/1", "1/1"]
            assert await tree.until("w ") == "w  1/1 available\n"
            await names.until("pod/w-0-a-")
            await world.client.set_scale(SETS, "w", 2, namespace=world.namespace)
            await names.until("podclique.grove.io/w-1-a")
            await tree.until("clique w-1-a: 1/1 ready")
            await tree.until("set w: 2/2 available")
            await table.until("2/2        2/2    2/2")
            await world.client.delete(SETS, "w", namespace=world.namespace, as_type=Object)
            await tree.until("set w: deleted")
            await table.until("podcliqueset.grove.io/w deleted")


async def as_tenant(client: Client, cluster: LocalCluster, namespace: str, folder: Path) -> str:
    """The kubeconfig of a user who may list everything in one namespace, and watch nothing."""
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}]
    subject = {"kind": "User", "name": TENANT, "apiGroup": RBAC}
    reference = {"kind": "Role", "name": "lister", "apiGroup": RBAC}
    binding = {"metadata": {"name": "lister"}, "subjects": [subject], "roleRef": reference}
    role = {"metadata": {"name": "lister"}, "rules": rules}
    await client.create(ROLES, role, namespace=namespace, as_type=Object)
    await client.create(ROLE_BINDINGS, binding, namespace=namespace, as_type=Object)
    kubeconfig = json.loads(cluster.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] |= {"as": TENANT}
    file = folder / "kubeconfig"
    file.write_text(json.dumps(kubeconfig))
    return str(file)


async def test_missing_rights_and_names_are_one_line(client, cluster, crds, namespace, tmp_path) -> None:
    await client.create(SETS, workload("demo", clique("a")), namespace=namespace, as_type=Object)
    admin = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    tenant = await as_tenant(client, cluster, namespace, tmp_path)
    refused = {
        ("get", "dem", *admin): f"no PodCliqueSet dem in namespace {namespace}: did you mean demo?",
        ("tree", "demo", "-n", "default", *admin[2:]): "no PodCliqueSet demo in namespace default: "
        f"there is one in namespace {namespace}: add -n {namespace}",
        ("tree", "-w", "dem", *admin): f"no PodCliqueSet dem in namespace {namespace}: did you mean demo?",
        ("plan", "dem", *admin): f"no PodCliqueSet dem in namespace {namespace}: did you mean demo?",
        ("get", "-A", "--kubeconfig", tenant): "list podcliquesets.grove.io",
        ("get", "-w", "-n", namespace, "--kubeconfig", tenant): "watch podclique",
        ("tree", "-n", "default", "--kubeconfig", tenant): "list podcliquesets.grove.io",
    }
    refused["tree", "dem", "-n", namespace, "--kubeconfig", tenant] = "did you mean demo?"
    ended = await batch([*refused])
    for (code, out, err), line in zip(ended, refused.values(), strict=True):
        assert (code, out, err.count("\n")) == (1, "", 1), err
        assert line in err


async def test_names_are_completed_from_the_cluster(client, cluster, crds, namespace, tmp_path) -> None:
    await client.create(SETS, workload("demo", clique("a")), namespace=namespace, as_type=Object)
    here = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    for command in ("get", "explain"):
        assert (await grove("__complete", command, *here, "d")).stdout == "demo\n:4\n"
    assert (await grove("__complete", "status", *here, "set/d")).stdout == "set/demo\n:4\n"
    assert (await grove("__complete", "status", *here, "what/d")).stdout == ":4\n"
    config = ("--kubeconfig", str(cluster.kubeconfig))
    assert f"{namespace}\n" in (await grove("__complete", "get", *config, "-n", "")).stdout
    assert (await grove("__complete", "get", *config, "--context", "")).stdout == "grove\n:4\n"
    ended = await grove("__complete", "get", "--kubeconfig", str(tmp_path), "")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, ":4\n", "")


async def test_closed_pipe_ends_commands_silently(client, cluster, crds, namespace) -> None:
    await client.create(SETS, workload("demo", clique("a")), namespace=namespace, as_type=Object)
    here = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    for arguments in (("tree", *here), ("get", "-o", "yaml", *here), ("topology", *here[2:])):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            ended = await asyncio.to_thread(
                subprocess.run, [GROVE, *arguments], stdout=writing, stderr=subprocess.PIPE, check=False
            )
        finally:
            os.close(writing)
        assert (ended.returncode, ended.stderr) == (141, b"")
