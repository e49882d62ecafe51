"""Fixtures for all tests: the real control plane, shared by a run, and a namespace per test."""

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
from grove.local.build.binaries import Binaries
from grove.local.build.versions import default_minor, is_older
from grove.local.cluster.lifecycle import LocalCluster
from grove.logger import configured
from tests.clusters import Clusters, programs, stop_leftovers
from tests.namespaces import make_namespace

pytest_plugins = ["tests.versions.plugin"]

# An ordinary run tries the same examples each time, so that a failure is caused by the change under test. The
# campaign tries new ones. There is no deadline per example: its duration depends on the load of the machine.
_NO_DEADLINE = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("ordinary", derandomize=True, **_NO_DEADLINE)
hypothesis.settings.register_profile("campaign", **_NO_DEADLINE)
hypothesis.settings.load_profile("campaign" if os.environ.get("GROVE_CAMPAIGN") else "ordinary")

# Rendering a traceback with all local variables takes seconds, and blocks the event loop of the test.
_PLAIN = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
_PROCESSORS = [*structlog.get_config()["processors"][:-1], _PLAIN]

_numbers = itertools.count(1)
_LONGEST_TEST = 3600.0 if os.environ.get("GROVE_CAMPAIGN") else 900.0
_DUMP_SECONDS = 30.0
_GATES = {"HPAScaleToZero": True} if is_older(default_minor(), "1.37") else {}
"""Settings of the shared cluster: the minimum of an autoscaler may be 0, as by default from 1.37 on."""


def pytest_configure() -> None:
    """Restore SIGINT: background jobs of a shell ignore it, and so would the programs that tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup() -> None:
    """Configure logging to the captured output, for the analysis of failures. What an earlier test of this
    process configured is dropped first: a command under test logs warnings only."""
    structlog.reset_defaults()
    structlog.configure(processors=_PROCESSORS)
    configured()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses a control plane as a cluster test."""
    for item in items:
        if {"cluster", "clusters", "control_plane"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.cluster)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that takes too long, with its stack, so that it does not block the run."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"{item.nodeid} did not finish within {_LONGEST_TEST:.0f} s")

    before = signal.signal(signal.SIGALRM, give_up)
    # Once more if the clean-up blocks as well, for example for a process that does not exit.
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_TEST, _DUMP_SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def control_plane() -> Binaries:
    """The programs of the control plane of the version under test."""
    return programs()


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """The cluster that the whole run shares; tests clean up after themselves."""
    stop_leftovers()
    shared = Clusters()
    try:
        settings = {"nodes": 16, "shape": "1x2x2x4", "audit": True, "init_containers": True}
        yield shared.start_now("shared", feature_gates=_GATES, **settings)
    finally:
        shared.stop_all()


@pytest.fixture
def clusters() -> Iterator[Clusters]:
    """Separate clusters for tests that break them."""
    own = Clusters()
    try:
        yield own
    finally:
        own.stop_all()


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[Client]:
    """A client of the shared cluster, as administrator."""
    async with Client(config.load(cluster.kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A namespace for one test; deleted afterwards with its objects."""
    name = f"test-{next(_numbers)}"
    await make_namespace(client, name)
    yield name
    await client.delete(NAMESPACES, name, as_type=Object)
