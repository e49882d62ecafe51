"""Fixtures for tests of the operator: labelled nodes, a namespace, and a watched namespace (`World`)."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, NODES
from grove.kube.errors import Conflict, NotFound
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import Account
from tests.cluster.operator.support.harness import World, watching
from tests.cluster.operator.support.metrics_api import Metrics, serving_metrics
from tests.cluster.operator.support.objects import CLIQUES, GANGS
from tests.cluster.operator.support.workloads import AGENT, clique
from tests.cluster.operator.support.world import GARBAGE
from tests.namespaces import make_namespace


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def agents(cluster: LocalCluster, crds: object) -> AsyncIterator[list[str]]:
    """The names of all nodes, labelled with the role that upstream's workloads select."""
    async with Client(config.load(cluster.kubeconfig)) as client:
        names = [node.metadata.name for node in (await client.list(NODES, as_type=Object)).items]
        for name in names:
            await client.patch(NODES, name, {"metadata": {"labels": AGENT}}, as_type=Object)
        yield names
        for name in names:
            nothing = dict.fromkeys(AGENT)
            await client.patch(NODES, name, {"metadata": {"labels": nothing}}, as_type=Object)


_numbers = itertools.count(1)


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    """A namespace for one test, which the test may delete."""
    name = f"scenario-{next(_numbers)}"
    await make_namespace(client, name)
    yield name
    with suppress(NotFound, Conflict):
        await client.delete(NAMESPACES, name, as_type=Object)


@pytest.fixture
def account(operator_account: Account) -> Account:
    """The account of the operators of a test. Modules override it for more rights."""
    return operator_account


@pytest.fixture
async def world(client: Client, account: Account, namespace: str, agents: list[str]) -> AsyncIterator[World]:
    """The test's namespace, watched, and emptied after the test."""
    async with watching(client, account.config, namespace) as world:
        yield world


@pytest.fixture
async def metrics(client: Client) -> AsyncIterator[Metrics]:
    """The values of external metrics, which autoscalers read."""
    async with serving_metrics(client) as served:
        yield served


@pytest.fixture
async def garbage_collector(world: World) -> None:
    """Waits until Kubernetes' garbage collector knows our kinds: it discovers new CRDs every 30 seconds, and
    before that it neither deletes nor orphans their objects."""
    missing_owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "missing", "uid": "0"}
    metadata = {"name": "dangling", "ownerReferences": [missing_owner]}
    for kind, spec in ((CLIQUES, clique("dangling")["spec"]), (GANGS, {"podgroups": []})):
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
        await world.create(kind, body)
    await world.until(
        lambda: not world.all(CLIQUES) and not world.all(GANGS), "the garbage collector", GARBAGE
    )
