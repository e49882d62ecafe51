"""What docs/admission.md says of how the webhooks run: its commands are run, its table is compared."""

from __future__ import annotations

import asyncio
import os
import re
import shlex

import pytest

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.local.build import binaries
from grove.local.cluster.lifecycle import LocalCluster
from grove.webhooks.registrations import served
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import admitting, eventually, refusal
from tests.cluster.webhooks.test_process import wrong
from tests.clusters import REPORTER
from tests.shared import ROOT

PAGE = (ROOT / "docs/admission.md").read_text()
RUNS = PAGE.partition("## How it runs")[2]


def test_the_table_names_what_is_registered() -> None:
    rows = re.findall(r"^\| (\w+) `([\w-]+)`.* \| `(/webhooks/[\w-]+)` \|$", RUNS, re.MULTILINE)
    assert rows == [
        (each.resource.kind, each.name, each.path.value) for each in served(authorizer=True, dynamo=True)
    ]


async def kubectl(cluster: LocalCluster, line: str) -> str:
    program = str(binaries.find(REPORTER)["kubectl"])
    process = await asyncio.create_subprocess_exec(
        program,
        *shlex.split(line)[1:],
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complaint = await process.communicate()
    assert process.returncode == 0, complaint.decode()
    return said.decode()


@pytest.mark.cluster
async def test_the_commands_do_what_is_said(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    lines = re.findall(r"^    (kubectl .*)$", RUNS, re.MULTILINE)
    looking = [line for line in lines if " get " in line]
    removing = [line for line in lines if " delete " in line]
    assert (len(looking), len(removing)) == (3, 2)
    async with admitting(client, config.load(cluster.kubeconfig), namespace):
        said = [await kubectl(cluster, line.replace("grove-system", namespace)) for line in looking]
        assert "grove-webhook-server-cert" in said[1]
        assert '"caBundle"' in said[2]
        assert "terminationDelay" in await refusal(client, SETS, wrong(), namespace=namespace)
        for line in removing:
            await kubectl(cluster, line)

        async def accepted() -> bool:
            return not await refusal(client, SETS, wrong(), namespace=namespace)

        await eventually(accepted)
