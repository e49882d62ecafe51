"""A cluster with an operator, the workloads of the demo, and a dashboard, for all tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from grove.local.build.binaries import Binaries
from tests.browser.support.dashboard import Dashboard, dashboard
from tests.browser.support.demo import Demo, demo_cluster


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def deployed(control_plane: Binaries) -> AsyncIterator[Demo]:
    """The cluster. Tests restore what they change."""
    async with demo_cluster() as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def demo(deployed: Demo) -> Demo:
    """The cluster, once both sets are as they were deployed: a test may end before what it restored runs."""
    await deployed.until_deployed()
    return deployed


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def live(deployed: Demo) -> AsyncIterator[Dashboard]:
    """The dashboard of an administrator."""
    async with dashboard("--kubeconfig", str(deployed.cluster.kubeconfig)) as found:
        yield found


@pytest.fixture
def address(live: Dashboard) -> str:
    """Where the page is."""
    return live.address
