"""Fixtures for commands that act on workloads, with an operator."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from grove.kube.client.client import Client
from tests.chart import Account
from tests.cluster.operator.support.harness import World, watching


@pytest.fixture
async def world(client: Client, operator_account: Account, namespace: str) -> AsyncIterator[World]:
    """The test's namespace, watched, and emptied after the test."""
    async with watching(client, operator_account.config, namespace) as world:
        yield world
