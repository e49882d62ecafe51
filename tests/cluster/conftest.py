"""Fixtures for tests of our own kinds: the CRDs and the operator's accounts, installed once a session."""

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
from tests.chart import AWARE, PLACING, Account, operator_account_of
from tests.cluster.operator.support.processes import seen
from tests.shared import shared_data

PATIENCE = 120.0
SCHEDULERS = (
    "kai/scheduling.run.ai_podgroups.yaml",
    "kai/kai.scheduler_topologies.yaml",
    "volcano/scheduling.volcano.sh_podgroups.yaml",
)
"""The CRDs of the schedulers, as their projects publish them."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def crds(cluster) -> dict[str, dict[str, Any]]:
    """Our CRDs by name, as the API server returns them once all are established."""
    async with Client(config.load(cluster.kubeconfig)) as client:
        for definition in crd.all_definitions():
            await apply(client, definition)
        names = [definition["metadata"]["name"] for definition in crd.all_definitions()]
        async with asyncio.timeout(PATIENCE):
            return {name: await established(client, name) for name in names}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def operator_account(cluster: LocalCluster, crds: object) -> Account:
    """The operator's ServiceAccount with exactly the rights of the chart: a missing rule fails a test."""
    return await operator_account_of(cluster)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def aware_account(cluster: LocalCluster, crds: object) -> Account:
    """The operator's ServiceAccount where topologies and all schedulers are enabled."""
    return await operator_account_of(cluster, AWARE, "aware")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def placing_account(cluster: LocalCluster, crds: object) -> Account:
    """The operator's ServiceAccount where the operator places gangs."""
    return await operator_account_of(cluster, PLACING, "placing")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def scheduler_crds(cluster, crds) -> AsyncIterator[None]:
    """The CRDs of KAI's and Volcano's PodGroups and of KAI's Topology, until the session ends."""
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
    """Apply a CRD server-side, as the chart's documentation says."""
    name = definition["metadata"]["name"]
    return await client.patch(
        CRDS, name, definition, kind=APPLY, field_manager="grove-tests", force=True, as_type=dict
    )


async def removed(client: Client, *names: str) -> None:
    """Delete CRDs and wait until they are gone: objects that are created before that are deleted too."""
    for name in names:
        with suppress(NotFound):
            await client.delete(CRDS, name, as_type=Object)
    await seen(client, Cache(CRDS, Object), lambda found: not any(found.get("", name) for name in names))


async def established(client: Client, name: str) -> dict[str, Any]:
    """The CRD, once the API server serves it, which may be later than its condition `Established`."""
    while True:
        shown = await client.get(CRDS, name, as_type=dict)
        reported = shown.get("status", {}).get("conditions") or ()
        conditions = {each["type"]: each["status"] for each in reported}
        if conditions.get("Established") == "True" and await _is_served(client, shown["spec"]):
            return shown
        await asyncio.sleep(0.1)


async def _is_served(client: Client, spec: dict[str, Any]) -> bool:
    """Whether every served version can be listed."""
    try:
        for version in spec["versions"]:
            if version["served"]:
                path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
                await client.raw("GET", f"{path}?limit=1")
    except NotFound:
        return False
    return True
