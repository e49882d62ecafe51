"""The dashboard of a snapshot file, for all tests of this folder. They need no control plane."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from bench.dashboard.busy_state import SMALL, busy_state

from grove.cluster_state.model import ClusterState
from grove.cluster_state.snapshot_file import encode
from tests.browser.support.dashboard import Dashboard, dashboard

AGE = 3 * 86_400.0
"""Of the snapshot, in seconds."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def state() -> ClusterState:
    """64 nodes, of which some are cordoned, tainted or not ready, with gangs that run and gangs that wait."""
    return busy_state(SMALL, time.time() - AGE)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def past(state: ClusterState, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Dashboard]:
    """A dashboard of that state."""
    file = tmp_path_factory.mktemp("dashboard") / "cluster.json"
    file.write_bytes(encode(state))
    async with dashboard("--snapshot", str(file)) as found:
        yield found


@pytest.fixture
def address(past: Dashboard) -> str:
    """Where the page is."""
    return past.address
