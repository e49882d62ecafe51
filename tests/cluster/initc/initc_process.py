"""`grove initc` as a process, with the arguments and files of a pod; and pods whose readiness the test
sets."""

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
from grove.plan.rbac import plan_rbac
from grove.plan.snapshot import RbacObjects
from tests.cluster.operator.support.processes import seen
from tests.plan.builders import a_set, read_set

PATIENCE = 120.0
GANG = "wl-0"


class Initc:
    """The process, and the lines that it has logged so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def wait_for_line(self, text: str) -> str:
        """The next line that contains the text."""
        async with asyncio.timeout(PATIENCE):
            while line := await self._next_line():
                if text in line:
                    return line
        raise AssertionError(f"ended without logging {text!r}: {self.lines}")

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
    """The objects that the operator creates for a set with a startup order, without owners: no set exists."""
    workload = read_set(a_set("a b", cliqueStartupType="CliqueStartupTypeInOrder"))
    found = msgspec.structs.replace(workload.metadata, namespace=namespace)
    deferred = DeferredValues()
    created = {}
    for intent in plan_rbac(msgspec.structs.replace(workload, metadata=found), RbacObjects(), 0.0):
        deferred.uids[intent.id] = "some"
        body = msgspec.json.decode(deferred.encode(intent.body))
        del body["metadata"]["ownerReferences"]
        created[intent.target.kind] = body
    return created


async def mount_token(client: Client, namespace: str, folder: Path, *, rights: bool = True) -> None:
    """A service account and its token in the folder; with the Role and RoleBinding of the operator, or
    without."""
    wanted = bodies(namespace)
    for resource in (SERVICE_ACCOUNTS, SECRETS):
        await client.create(resource, wanted[resource.kind], namespace=namespace, as_type=Object)
    if rights:
        await grant_access(client, namespace)
    secrets = Cache(SECRETS, TokenSecret, namespace=namespace)
    await seen(client, secrets, lambda found: "token" in token_secret(found, namespace).data)
    for name, value in token_secret(secrets, namespace).data.items():
        (folder / name).write_bytes(base64.b64decode(value))


def token_secret(secrets: Cache[TokenSecret], namespace: str) -> TokenSecret:
    found = secrets.get(namespace, "wl-ic-sat")
    assert found is not None
    return found


async def grant_access(client: Client, namespace: str) -> None:
    wanted = bodies(namespace)
    for resource in (ROLES, ROLE_BINDINGS):
        body = wanted[resource.kind]
        await client.create(resource, body, namespace=namespace, as_type=PartialObjectMetadata)


async def create_pod(client: Client, namespace: str, name: str, clique: str, gang: str = GANG) -> None:
    """A pod that is never scheduled."""
    pod_labels = {labels.GANG: gang, labels.CLIQUE: clique}
    spec = {
        "containers": [{"name": "main", "image": "i"}],
        "schedulingGates": [{"name": "example.com/never"}],
    }
    body = {"metadata": {"name": name, "labels": pod_labels}, "spec": spec}
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
