"""Fixtures for tests of NVLink domains: the ComputeDomain CRD, an account that may read nodes, and the test's
namespace with a stand-in for the driver."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.resource import EVENTS
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import Account, operator_account_of
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.cleanup import clear
from tests.cluster.operator.support.fabric import DOMAINS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from tests.cluster.operator.support.harness import World


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def nvlink(cluster: LocalCluster, crds: object) -> AsyncIterator[None]:
    """The driver's CRD, for the tests of this folder."""
    async with Client(config.load(cluster.kubeconfig)) as client:
        await fabric.install(client)
        yield
        await fabric.uninstall(client)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def automatic_account(cluster: LocalCluster, crds: object) -> Account:
    """The operator's account where automatic domains are enabled: it may read nodes."""
    return await operator_account_of(cluster, {"config.network.autoMNNVLEnabled": True}, "automatic")


@pytest.fixture
async def world(nvlink: None, world: World) -> AsyncIterator[World]:
    """The test's namespace, with a stand-in for the driver, and with domains, claims and events watched."""
    await world.watch(DOMAINS, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, EVENTS)
    async with fabric.driver(world.client):
        yield world
        world.check()
        world.operators.clear()
        await clear(world)
        await fabric.delete_domains(world)
        await world.until(
            lambda: not world.all(RESOURCE_CLAIMS) and not world.all(RESOURCE_CLAIM_TEMPLATES), "no claims"
        )
