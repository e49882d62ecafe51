"""Runs the commands of the chart's Jobs, since KWOK's nodes run nothing.

An annotation keeps KWOK from completing the pod of a Job. Its command runs here, with its ServiceAccount; the
exit code of the command decides whether the pod succeeds.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import NAMESPACE, account
from tests.cluster.operator.support.objects import AnyObject

WAIT = {"pod-ready.grove.local/delay": "1h"}
"""Annotations of pods that KWOK must not make ready."""


class JobRun:
    """The command of a pod, its exit code and output."""

    def __init__(self, pod: AnyObject, command: list[str], code: int, output: str) -> None:
        self.job = pod.labels["app.kubernetes.io/name"]
        self.command, self.code, self.output = command, code, output


async def run(command: list[str], kubeconfig: Path) -> tuple[int, str]:
    """Run a `grove` command with an account; returns its exit code and output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from grove.cli.main import main; main()",
        *command,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


@asynccontextmanager
async def running_jobs(cluster: LocalCluster, client: Client) -> AsyncIterator[list[JobRun]]:
    """Run the commands of the Jobs in the chart's namespace when they are created."""
    ran: list[JobRun] = []
    waiting: asyncio.Queue[AnyObject] = asyncio.Queue()
    begun: set[str] = set()

    def look(_old: AnyObject | None, new: AnyObject | None) -> None:
        if new is not None and new.uid not in begun and new.spec.get("nodeName") and _is_of_job(new):
            begun.add(new.uid)
            waiting.put_nowait(new)

    async def work() -> None:
        while True:
            ran.append(await _play(cluster, client, await waiting.get()))

    cache = Cache(PODS, AnyObject, namespace=NAMESPACE)
    cache.subscribe(look)
    tasks = {asyncio.create_task(Reflector(client, cache).run()), asyncio.create_task(work())}
    try:
        yield ran
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled() and (problem := task.exception()):
                raise problem


def _is_of_job(pod: AnyObject) -> bool:
    return any(owner.kind == "Job" for owner in pod.metadata.owner_references)


async def _play(cluster: LocalCluster, client: Client, pod: AnyObject) -> JobRun:
    (container,) = pod.spec["containers"]
    program, *command = container["command"] + container["args"]
    assert program == "grove"
    credentials = await account(client, cluster, NAMESPACE, pod.spec["serviceAccountName"])
    code, output = await run(command, credentials.kubeconfig)
    ended: dict[str, Any] = {"exitCode": code, "reason": "Error" if code else "Completed"}
    state = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
    status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [state]}
    await client.patch(
        PODS, pod.name, {"status": status}, namespace=NAMESPACE, subresource="status", as_type=AnyObject
    )
    return JobRun(pod, command, code, output)
