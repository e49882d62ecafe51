"""A cluster of the chart's own: its webhooks are for all namespaces, its uninstall lets go of every set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.local.build import binaries
from grove.local.cluster.lifecycle import LocalCluster
from tests.clusters import Clusters


@pytest.fixture(scope="package")
def site(control_plane: binaries.Binaries) -> Iterator[LocalCluster]:
    """Where the chart is installed."""
    own = Clusters(lambda: control_plane)
    try:
        yield own.start_now("site")
    finally:
        own.stop_all()


@pytest.fixture
async def admin(site: LocalCluster) -> AsyncIterator[Client]:
    """That cluster, as its administrator."""
    async with Client(config.load(site.kubeconfig)) as client:
        yield client
