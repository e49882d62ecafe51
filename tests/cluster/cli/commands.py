"""Runs `grove` as a process of its own against the cluster of a test."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import ROLE_BINDINGS, ROLES

GROVE = str(Path(sys.executable).with_name("grove"))
TENANT = "tenant-of-one-namespace"
RBAC = "rbac.authorization.k8s.io"
PATIENCE = 90.0
READ_ALL = ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},)
_AGE = re.compile(r"\b\d+[smh]\b")
_SUFFIX = re.compile(r"(demo-\d-(?:\w+-)*?\w+)-[a-z0-9]{5,10}\b")


class Ended(NamedTuple):
    """A command that has ended."""

    code: int | None
    out: str
    err: str


async def grove(*arguments: str) -> Ended:
    """The exit code, the output and the errors of a command."""
    process = await asyncio.create_subprocess_exec(
        GROVE, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    return Ended(process.returncode, out.decode(), err.decode())


class LiveCommand:
    """A command that runs until it is interrupted."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def until(self, words: str) -> str:
        """The next line with these words."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while words not in (line := (await self.process.stdout.readline()).decode()):
                assert line, f"ended before {words}: {self.lines}, {await self._errors()}"
                self.lines.append(line)
        self.lines.append(line)
        return line

    async def _errors(self) -> str:
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()

    async def interrupt(self) -> tuple[int, str]:
        """The exit code, and what was said on stderr, after Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return await self.end()

    async def end(self) -> tuple[int, str]:
        """The exit code, and what was said on stderr."""
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait(), await self._errors()


@asynccontextmanager
async def live(*arguments: str) -> AsyncIterator[LiveCommand]:
    """A command that runs until the block is left."""
    process = await asyncio.create_subprocess_exec(
        GROVE, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield LiveCommand(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def tenant_kubeconfig(
    client: Client, cluster: Any, namespace: str, folder: Path, rules: Any = READ_ALL
) -> str:
    """The kubeconfig of a user who may read everything in one namespace, or what the rules say."""
    subject = {"kind": "User", "name": TENANT, "apiGroup": RBAC}
    role = {"metadata": {"name": "tenant"}, "rules": list(rules)}
    reference = {"kind": "Role", "name": "tenant", "apiGroup": RBAC}
    binding = {"metadata": {"name": "tenant"}, "subjects": [subject], "roleRef": reference}
    await client.create(ROLES, role, namespace=namespace, as_type=Object)
    await client.create(ROLE_BINDINGS, binding, namespace=namespace, as_type=Object)
    kubeconfig = json.loads(cluster.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] |= {"as": TENANT}
    file = folder / "kubeconfig"
    file.write_text(json.dumps(kubeconfig))
    return str(file)


def steady(text: str, namespace: str) -> str:
    """The output without what differs from run to run: the namespace, ages and random parts of names."""
    text = _AGE.sub("AGE", text.replace(namespace, "NAMESPACE"))
    return _SUFFIX.sub(r"\1-POD", text)
