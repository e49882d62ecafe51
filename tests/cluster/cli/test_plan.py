"""`grove plan` on the real control plane: what the API server says in a dry run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from grove.dynamo.api import crd_definitions
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.operator.caches.dynamo import GRAPHS
from tests.cluster.cli.commands import grove
from tests.cluster.conftest import PATIENCE, apply, established
from tests.cluster.webhooks.harness import admitting
from tests.shared import shared_data

SWITCHES = {"topologyAwareScheduling": {"enabled": True}, "dynamo": {"enabled": True}}
VERSIONS = ("v1alpha1", "v1beta1")


@pytest.fixture
async def graph_crds(client: Client, crds: object) -> None:
    """The CRDs of DynamoGraphDeployments."""
    for definition in crd_definitions.all_definitions():
        await apply(client, definition)
        async with asyncio.timeout(PATIENCE):
            await established(client, definition["metadata"]["name"])


def example(version: str) -> Path:
    """A graph with a frontend and two workers, in one of the versions of its API."""
    return shared_data("dynamo/input") / f"{version}-vllm_deploy_disagg.yaml"


async def planned(cluster: Any, namespace: str, file: Path) -> tuple[int | None, dict[str, Any]]:
    """The exit code, and the plan of the only object of a file."""
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    code, out, err = await grove("plan", "-f", str(file), *where, "-o", "json")
    assert out, err
    (found,) = json.loads(out)["plans"]
    return code, found


async def assert_planned(client: Client, cluster: Any, namespace: str, version: str) -> None:
    """The example is planned before it exists, and once it does."""
    file = example(version)
    code, found = await planned(cluster, namespace, file)
    assert found["admission"] == {"allowed": True, "by": "the API server (dry run)"}, found
    assert (code, found["action"], found["verdict"]) == (0, "create", "Fits")
    assert len(found["gangs"]) == 1
    body = yaml.safe_load(file.read_text())
    resource = replace(GRAPHS, version=version)
    await client.create(resource, body, namespace=namespace, as_type=dict)
    code, found = await planned(cluster, namespace, file)
    assert found["admission"]["allowed"], found
    assert (code, found["action"], found["verdict"]) == (0, "update", "Fits")


@pytest.mark.parametrize("version", VERSIONS)
async def test_graph_is_planned_without_webhooks(client, cluster, graph_crds, namespace, version):
    await assert_planned(client, cluster, namespace, version)


@pytest.mark.parametrize("version", VERSIONS)
async def test_graph_is_planned_with_webhooks(client, cluster, graph_crds, namespace, version):
    async with admitting(client, config.load(cluster.kubeconfig), namespace, **SWITCHES):
        await assert_planned(client, cluster, namespace, version)
