"""What tests of our own kinds ask for: their CRDs and the operator's account, installed once a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest_asyncio
import yaml

from grove.api.crds import crd
from grove.kube.auth import config
from grove.kube.cache.cache import Cache
from grove.kube.client.client import APPLY, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.errors import NotFound
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import AWARE, Account, operator_account_of
from tests.cluster.operator.support.processes import seen
from tests.shared import shared_data

PATIENCE = 120.0
SCHEDULERS = (
    "kai/scheduling.run.ai_podgroups.yaml",
    "kai/kai.scheduler_topologies.yaml",
    "volcano/scheduling.volcano.sh_podgroups.yaml",
)
"""The CRDs of schedulers, as their projects publish them."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def crds(cluster) -> dict[str, dict[str, Any]]:
    """Our CRDs by name, as the API server shows them once all are established."""
    async with Client(config.load(cluster.kubeconfig)) as client:
        for definition in crd.all_definitions():
            await apply(client, definition)
        names = [definition["metadata"]["name"] for definition in crd.all_definitions()]
        async with asyncio.timeout(PATIENCE):
            return {name: await established(client, name) for name in names}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def operator_account(cluster: LocalCluster, crds: object) -> Account:
    """Whom the operator is to the shared cluster: a right that the chart forgets is one it does not have."""
    return await operator_account_of(cluster)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def aware_account(cluster: LocalCluster, crds: object) -> Account:
    """The same where topologies and all schedulers are switched on."""
    return await operator_account_of(cluster, AWARE, "aware")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def scheduler_crds(cluster, crds) -> AsyncIterator[None]:
    """PodGroups of KAI and Volcano, and KAI's Topology, as long as tests need them."""
    texts = [shared_data(f"crds/{file}").read_text() for file in SCHEDULERS]
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


async def apply(client: Client, definition: dict[str, Any]) -> dict[str, Any]:
    """The way the chart's documentation says to install them."""
    name = definition["metadata"]["name"]
    return await client.patch(
        CRDS, name, definition, kind=APPLY, field_manager="grove-tests", force=True, as_type=dict
    )


async def removed(client: Client, *names: str) -> None:
    """Remove CRDs, and wait until they have gone: what is installed before that goes with them."""
    for name in names:
        with suppress(NotFound):
            await client.delete(CRDS, name, as_type=Object)
    await seen(client, Cache(CRDS, Object), lambda found: not any(found.get("", name) for name in names))


async def established(client: Client, name: str) -> dict[str, Any]:
    """The CRD, once the API server serves it, which may be a while after it says that it is established."""
    while True:
        shown = await client.get(CRDS, name, as_type=dict)
        said = shown.get("status", {}).get("conditions") or ()
        conditions = {each["type"]: each["status"] for each in said}
        if conditions.get("Established") == "True" and await _answered_for(client, shown["spec"]):
            return shown
        await asyncio.sleep(0.1)


async def _answered_for(client: Client, spec: dict[str, Any]) -> bool:
    """Whether every version is there to be listed."""
    try:
        for version in spec["versions"]:
            if version["served"]:
                path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
                await client.raw("GET", f"{path}?limit=1")
    except NotFound:
        return False
    return True
