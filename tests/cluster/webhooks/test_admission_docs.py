"""docs/admission.md, section "How it runs": its table matches the registered webhooks, and its commands
work."""

from __future__ import annotations

import asyncio
import os
import re
import shlex

import pytest

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.local.cluster.lifecycle import LocalCluster
from grove.webhooks.registrations import served
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import admitting, eventually, refusal
from tests.cluster.webhooks.test_process import invalid_set
from tests.clusters import programs
from tests.shared import ROOT

PAGE = (ROOT / "docs/admission.md").read_text()
RUNS = PAGE.partition("## How it runs")[2]


def test_table_lists_the_registered_webhooks() -> None:
    rows = re.findall(r"^\| (\w+) `([\w-]+)`.* \| `(/webhooks/[\w-]+)` \|$", RUNS, re.MULTILINE)
    assert rows == [
        (each.resource.kind, each.name, each.path.value) for each in served(authorizer=True, dynamo=True)
    ]


async def kubectl(cluster: LocalCluster, line: str) -> str:
    program = str(programs()["kubectl"])
    process = await asyncio.create_subprocess_exec(
        program,
        *shlex.split(line)[1:],
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    stdout, stderr = await process.communicate()
    assert process.returncode == 0, stderr.decode()
    return stdout.decode()


@pytest.mark.cluster
async def test_documented_commands_work(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    lines = re.findall(r"^    (kubectl .*)$", RUNS, re.MULTILINE)
    get_lines = [line for line in lines if " get " in line]
    delete_lines = [line for line in lines if " delete " in line]
    assert (len(get_lines), len(delete_lines)) == (3, 2)
    async with admitting(client, config.load(cluster.kubeconfig), namespace):
        outputs = [await kubectl(cluster, line.replace("grove-system", namespace)) for line in get_lines]
        assert "grove-webhook-server-cert" in outputs[1]
        assert '"caBundle"' in outputs[2]
        assert "terminationDelay" in await refusal(client, SETS, invalid_set(), namespace=namespace)
        for line in delete_lines:
            await kubectl(cluster, line)

        async def accepted() -> bool:
            return not await refusal(client, SETS, invalid_set(), namespace=namespace)

        await eventually(accepted)
