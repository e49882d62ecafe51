"""What every test can ask for: the real control plane, shared by a run, and a namespace of its own."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import AsyncIterator, Iterator

import hypothesis
import pytest
import structlog

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES
from grove.local.build import binaries
from grove.local.cluster.lifecycle import LocalCluster
from tests.clusters import REPORTER, Clusters, stop_leftovers
from tests.namespaces import make_namespace

# An ordinary run tries the same examples each time: it tells about the change, not about luck. The campaign
# looks for new ones. How long an example takes tells how busy the machine is, and nothing else.
_NO_DEADLINE = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("ordinary", derandomize=True, **_NO_DEADLINE)
hypothesis.settings.register_profile("campaign", **_NO_DEADLINE)
hypothesis.settings.load_profile("campaign" if os.environ.get("GROVE_CAMPAIGN") else "ordinary")

# A traceback with everybody's locals takes seconds to be drawn, and meanwhile the test's loop stands still.
_PLAIN = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
_PROCESSORS = [*structlog.get_config()["processors"][:-1], _PLAIN]

_numbers = itertools.count(1)
_LONGEST_TEST = 900.0
_DUMP_SECONDS = 30.0
_GATES = {"HPAScaleToZero": True}
"""An autoscaler's minimum may be 0."""


def pytest_configure() -> None:
    """Shells let programs in the background ignore SIGINT, and those hand it on to what they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup() -> None:
    """Logs are for people who look for a failure, and cost next to nothing."""
    structlog.configure(processors=_PROCESSORS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for a control plane is a cluster test, said or not."""
    for item in items:
        if {"cluster", "clusters", "control_plane"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.cluster)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that waits for what never comes fails, and says where it stood; it does not hold up the rest."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"{item.nodeid} did not end within {_LONGEST_TEST:.0f} s")

    before = signal.signal(signal.SIGALRM, give_up)
    # Once more if cleaning up waits in its turn, as for a process that does not end.
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_TEST, _DUMP_SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def control_plane() -> binaries.Binaries:
    """The programs, found or built once."""
    return binaries.find(REPORTER)


@pytest.fixture(scope="session")
def cluster(control_plane: binaries.Binaries) -> Iterator[LocalCluster]:
    """The cluster that the whole run shares; tests leave it as they found it."""
    stop_leftovers()
    shared = Clusters(lambda: control_plane)
    try:
        settings = {"nodes": 16, "shape": "1x2x2x4", "audit": True, "init_containers": True}
        yield shared.start_now("shared", feature_gates=_GATES, **settings)
    finally:
        shared.stop_all()


@pytest.fixture
def clusters(control_plane: binaries.Binaries) -> Iterator[Clusters]:
    """Clusters of a test's own, for tests that break them."""
    own = Clusters(lambda: control_plane)
    try:
        yield own
    finally:
        own.stop_all()


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[Client]:
    """The shared cluster, as its administrator."""
    async with Client(config.load(cluster.kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A namespace of the test's own; what is in it goes with it."""
    name = f"test-{next(_numbers)}"
    await make_namespace(client, name)
    yield name
    await client.delete(NAMESPACES, name, as_type=Object)
