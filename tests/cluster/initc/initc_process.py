"""`grove initc` as a process, told and mounted as in a pod; and pods whose readiness the test decides."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from grove.api.naming import labels
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.kube.cache.cache import Cache
from grove.kube.client.client import STRATEGIC, Client, Object
from grove.kube.client.resource import PODS, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS
from grove.kube.executor.deferred_values import DeferredValues
from grove.local.standins.token_mounts import TokenSecret
from grove.plan.rbac import RbacObjects, plan_rbac
from tests.cluster.operator.support.processes import seen
from tests.plan.builders import a_set, read_set

PATIENCE = 120.0
GANG = "wl-0"


class Initc:
    """The process, and what it has said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def hear(self, words: str) -> str:
        """The next line that holds these words."""
        async with asyncio.timeout(PATIENCE):
            while line := await self._next_line():
                if words in line:
                    return line
        raise AssertionError(f"ended without saying {words!r}: {self.lines}")

    async def ended(self) -> int:
        """The exit code, once it has ended by itself."""
        async with asyncio.timeout(PATIENCE):
            while await self._next_line():
                pass
            return await self.process.wait()

    async def _next_line(self) -> str:
        assert self.process.stderr is not None
        line = (await self.process.stderr.readline()).decode()
        if line:
            self.lines.append(line.strip())
        return line


@asynccontextmanager
async def initc(folder: Path, server: str, namespace: str, *arguments: str) -> AsyncIterator[Initc]:
    """The program in a pod of the gang, whose token is in the folder."""
    (folder / "namespace").write_text(namespace)
    (folder / "podgangname").write_text(GANG)
    parts = urlsplit(server)
    context = {"KUBERNETES_SERVICE_HOST": parts.hostname or "", "KUBERNETES_SERVICE_PORT": str(parts.port)}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from grove.cli.entry import main; main()",
        *("initc", *arguments, "--service-account", str(folder), "--pod-info", str(folder)),
        env={**os.environ, **context},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Initc(process)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.communicate()


def bodies(namespace: str) -> dict[str, dict[str, Any]]:
    """What the operator makes for a set with a start order, owned by nobody: here is no set."""
    workload = read_set(a_set("a b", cliqueStartupType="CliqueStartupTypeInOrder"))
    found = msgspec.structs.replace(workload.metadata, namespace=namespace)
    binding = DeferredValues()
    made = {}
    for intent in plan_rbac(msgspec.structs.replace(workload, metadata=found), RbacObjects(), 0.0):
        binding.uids[intent.id] = "some"
        body = msgspec.json.decode(binding.encode(intent.body))
        del body["metadata"]["ownerReferences"]
        made[intent.target.kind] = body
    return made


async def mount(client: Client, namespace: str, folder: Path, *, rights: bool = True) -> None:
    """An account with its token, mounted; with the rights that the operator gives, or without."""
    made = bodies(namespace)
    for resource in (SERVICE_ACCOUNTS, SECRETS):
        await client.create(resource, made[resource.kind], namespace=namespace, as_type=Object)
    if rights:
        await allow(client, namespace)
    secrets = Cache(SECRETS, TokenSecret, namespace=namespace)
    await seen(client, secrets, lambda found: "token" in one(found, namespace).data)
    for name, value in one(secrets, namespace).data.items():
        (folder / name).write_bytes(base64.b64decode(value))


def one(secrets: Cache[TokenSecret], namespace: str) -> TokenSecret:
    found = secrets.get(namespace, "wl-ic-sat")
    assert found is not None
    return found


async def allow(client: Client, namespace: str) -> None:
    made = bodies(namespace)
    for resource in (ROLES, ROLE_BINDINGS):
        await client.create(resource, made[resource.kind], namespace=namespace, as_type=PartialObjectMetadata)


async def a_pod(client: Client, namespace: str, name: str, clique: str, gang: str = GANG) -> None:
    """A pod that no node will ever take."""
    carried = {labels.GANG: gang, labels.CLIQUE: clique}
    spec = {
        "containers": [{"name": "main", "image": "i"}],
        "schedulingGates": [{"name": "example.com/never"}],
    }
    body = {"metadata": {"name": name, "labels": carried}, "spec": spec}
    await client.create(PODS, body, namespace=namespace, as_type=Object)


async def set_ready(client: Client, namespace: str, name: str, ready: bool = True) -> None:
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    await client.patch(
        PODS,
        name,
        {"status": status},
        namespace=namespace,
        as_type=Object,
        kind=STRATEGIC,
        subresource="status",
    )
