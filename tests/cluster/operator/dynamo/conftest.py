"""Fixtures for tests of DynamoGraphDeployments: an account with the chart's rights for them, and a watched
namespace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from grove.dynamo.api import crd_definitions
from grove.kube.client.client import Client
from grove.kube.client.resource import CONFIG_MAPS
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.dynamo import ADAPTERS, GRAPHS
from tests.chart import NAMESPACE, Account, account, apply, operator_rights, until_granted
from tests.cluster.conftest import PATIENCE, established
from tests.cluster.conftest import apply as install
from tests.cluster.operator.support.world import World, watching

NAME = "grove-dynamo"
PROFILES = [{"name": "default-scheduler"}, {"name": "kai-scheduler"}]


@pytest.fixture
async def dynamo_account(cluster: LocalCluster, client: Client, operator_account: Account) -> Account:
    """An account of its own with the rights of an operator that reconciles DynamoGraphDeployments."""
    for definition in crd_definitions.all_definitions():
        await install(client, definition)
        async with asyncio.timeout(PATIENCE):
            await established(client, definition["metadata"]["name"])
    rights = []
    for mode in ("affinity", "kueue"):
        for right in rendered(mode):
            if right["kind"] == "ServiceAccount":
                await apply(client, right)
            elif right["kind"] in ("ClusterRole", "ClusterRoleBinding"):
                right["metadata"]["name"] += f"-{mode}"
                if "roleRef" in right:
                    right["roleRef"]["name"] += f"-{mode}"
                await apply(client, right)
                rights.append(right)
    await until_granted(client, rights)
    return await account(client, cluster, NAMESPACE, NAME)


def rendered(mode: str) -> list[dict[str, Any]]:
    """The rights of an operator whose DynamoGraphDeployments may opt out of Grove."""
    values = {
        "config.dynamo.enabled": True,
        "config.dynamo.withoutGrove": True,
        "config.dynamo.imagePullSecretDiscovery": True,
        "config.dynamo.topologyAwareScheduling.mode": mode,
        "config.scheduler.profiles": PROFILES,
        "serviceAccount.name": NAME,
    }
    return operator_rights(values)


@pytest.fixture
async def dynamo(
    client: Client, dynamo_account: Account, namespace: str, agents: list[str]
) -> AsyncIterator[World]:
    """The test's namespace, with graphs, scaling adapters and ConfigMaps watched too."""
    async with watching(client, dynamo_account.config, namespace) as world:
        await world.watch(GRAPHS, ADAPTERS, CONFIG_MAPS)
        yield world
