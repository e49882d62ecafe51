"""What scenarios ask for: nodes of the role that upstream's workloads want, and a world of their own."""

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
from tests.cluster.operator.support.objects import CLIQUES, GANGS
from tests.cluster.operator.support.workloads import AGENT, clique
from tests.cluster.operator.support.world import GARBAGE
from tests.namespaces import make_namespace


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def agents(cluster: LocalCluster, crds: object) -> AsyncIterator[list[str]]:
    """All nodes of the shared cluster, as agents."""
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
    """A namespace of the scenario's own, which it may delete."""
    name = f"scenario-{next(_numbers)}"
    await make_namespace(client, name)
    yield name
    with suppress(NotFound, Conflict):
        await client.delete(NAMESPACES, name, as_type=Object)


@pytest.fixture
async def world(
    client: Client, operator_account: Account, namespace: str, agents: list[str]
) -> AsyncIterator[World]:
    """A namespace of the test's own, watched; left empty."""
    async with watching(client, operator_account.config, namespace) as world:
        yield world


@pytest.fixture
async def collector(world: World) -> None:
    """Kubernetes' garbage collector, once it knows our kinds: it learns of new CRDs twice a minute, and
    before that it neither collects nor orphans what is theirs."""
    nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0"}
    metadata = {"name": "left-behind", "ownerReferences": [nobody]}
    for kind, spec in ((CLIQUES, clique("left-behind")["spec"]), (GANGS, {"podgroups": []})):
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
        await world.create(kind, body)
    await world.until(
        lambda: not world.all(CLIQUES) and not world.all(GANGS), "the garbage collector", GARBAGE
    )
