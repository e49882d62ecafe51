"""The CRDs of the schedulers, as their projects publish them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
import yaml

from grove.kube import config
from grove.kube.client import Client
from grove.kube.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.wire import Object
from tests.cluster.conftest import PATIENCE, apply, established
from tests.shared import shared_data

FILES = (
    "kai/scheduling.run.ai_podgroups.yaml",
    "kai/kai.scheduler_topologies.yaml",
    "volcano/scheduling.volcano.sh_podgroups.yaml",
)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def scheduler_crds(cluster, crds) -> AsyncIterator[None]:
    """PodGroups of KAI and Volcano, and KAI's Topology, as long as tests need them."""
    texts = [shared_data(f"crds/{file}").read_text() for file in FILES]
    definitions = [yaml.load(text, Loader=yaml.CSafeLoader) for text in texts]
    names = [definition["metadata"]["name"] for definition in definitions]
    async with Client(config.load(cluster.kubeconfig)) as client:
        for definition in definitions:
            definition.pop("status", None)
            await apply(client, definition)
        async with asyncio.timeout(PATIENCE):
            for name in names:
                await established(client, name)
        yield
        for name in names:
            await client.delete(CRDS, name, as_type=Object)
