"""A separate cluster for the chart: its webhooks act on all namespaces, its uninstall detaches all sets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.local.cluster.lifecycle import LocalCluster
from tests.clusters import Clusters


@pytest.fixture(scope="package")
def site() -> Iterator[LocalCluster]:
    """The cluster in which the chart is installed."""
    own = Clusters()
    try:
        yield own.start_now("site")
    finally:
        own.stop_all()


@pytest.fixture
async def admin(site: LocalCluster) -> AsyncIterator[Client]:
    """A client of that cluster, as administrator."""
    async with Client(config.load(site.kubeconfig)) as client:
        yield client
