"""Fixtures for tests of other schedulers: their CRDs are installed, and their gang objects are watched."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from grove.kube.client.client import Client
from grove.operator.caches.resources import external_resource
from grove.schedulers import kai, volcano
from tests.chart import Account
from tests.cluster.operator.support.world import World, watching


@pytest.fixture
async def world(
    client: Client, aware_account: Account, namespace: str, scheduler_crds: None
) -> AsyncIterator[World]:
    """A namespace of the test's own, whose operator has the rights to the kinds of KAI and Volcano."""
    async with watching(client, aware_account.config, namespace) as world:
        await world.watch(external_resource(kai.POD_GROUP), external_resource(volcano.POD_GROUP))
        yield world
