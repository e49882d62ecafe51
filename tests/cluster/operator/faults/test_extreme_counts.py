"""Counts that no cluster can hold, on an API server with CRDs without maxima and without our webhooks: the
sets report that they exceed a limit, and all other sets are reconciled as usual."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from grove.api.crds import crd
from grove.api.naming import labels
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.auth import config
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import LEASES, PODS
from grove.kube.leader.lease import Lease
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import NAMESPACE, Account, operator_account_of
from tests.cluster.conftest import apply, established
from tests.cluster.operator.support.objects import CLIQUES, SETS
from tests.cluster.operator.support.processes import QUICK_ELECTION, configuration, running, seen
from tests.cluster.operator.support.workloads import clique, group, workload
from tests.clusters import Clusters
from tests.namespaces import make_namespace

pytestmark = pytest.mark.cluster

HUGE = 2**31 - 1
LEASE = "grove-operator-leader-election"
LIMIT, GANG = "ERR_EXCEED_POD_LIMIT", "ERR_EXCEED_PODGANG_SIZE"
EXTREME_SETS = {
    "replicas": (workload("replicas", clique("a"), replicas=HUGE), LIMIT, f"{HUGE} pods"),
    "pods": (workload("pods", clique("a", 3_000_000)), LIMIT, "3000000 pods"),
    "product": (workload("product", clique("a", 50_000), replicas=50_000), LIMIT, "2500000000 pods"),
    "empty": (workload("empty", clique("a", 0), replicas=HUGE), LIMIT, f"{HUGE} pods"),
    "groups": (workload("groups", clique("a"), groups=(group("g", HUGE, HUGE, "a"),)), LIMIT, f"{HUGE} pods"),
    "gang": (workload("gang", clique("a", 45_000)), GANG, "45000 pods"),
}


@pytest.fixture
async def unlimited_cluster(clusters: Clusters) -> AsyncIterator[tuple[LocalCluster, Client, Account]]:
    """A cluster with CRDs without maxima, as earlier releases had them."""
    cluster = await clusters.start("counts")
    async with Client(config.load(cluster.kubeconfig)) as client:
        for definition in crd.all_definitions():
            await apply(client, _without_maximum(definition))
            await established(client, definition["metadata"]["name"])
        for name in ("tenant", "neighbour"):
            await make_namespace(client, name)
        yield cluster, client, await operator_account_of(cluster)


def _without_maximum(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_maximum(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: _without_maximum(value) for key, value in node.items() if key != "maximum"}


def sets(namespace: str) -> Cache[PodCliqueSet]:
    return Cache(SETS, PodCliqueSet, namespace=namespace)


def errors(found: Cache[PodCliqueSet], namespace: str, name: str) -> dict[str, str]:
    known = found.get(namespace, name)
    return {error.code: error.description for error in known.status.last_errors} if known else {}


def is_available(found: Cache[PodCliqueSet], namespace: str, name: str) -> bool:
    known = found.get(namespace, name)
    return known is not None and known.status.available_replicas == known.spec.replicas > 0


async def create_available_neighbour(client: Client, name: str) -> None:
    """Create a set in another namespace and wait until it is available."""
    await client.create(SETS, workload(name, clique("a", 2)), namespace="neighbour", as_type=Object)
    await seen(client, sets("neighbour"), lambda found: is_available(found, "neighbour", name))


async def pods(client: Client, name: str) -> set[str]:
    listed = await client.list(PODS, namespace="tenant", labels=f"{labels.PART_OF}={name}", as_type=Object)
    return {pod.metadata.uid for pod in listed.items}


async def test_extreme_counts_are_reported_and_delay_no_set(
    unlimited_cluster: tuple[LocalCluster, Client, Account], tmp_path: Path
) -> None:
    _, client, account = unlimited_cluster
    wanted = configuration(leaderElection=QUICK_ELECTION)
    async with running(tmp_path, account.kubeconfig, wanted, "--namespace", NAMESPACE) as operator:
        await operator.hear("working")
        first = (await client.get(LEASES, LEASE, namespace=NAMESPACE, as_type=Lease)).spec
        await client.create(SETS, workload("grown", clique("a")), namespace="tenant", as_type=Object)
        await seen(client, sets("tenant"), lambda found: is_available(found, "tenant", "grown"))

        for body, _, _ in EXTREME_SETS.values():
            await client.create(SETS, body, namespace="tenant", as_type=Object)
        await client.create(PODS, forged("grown"), namespace="tenant", as_type=Object)
        await create_available_neighbour(client, "during")
        for name, (_, code, text) in EXTREME_SETS.items():
            reported = lambda found, name=name, code=code, text=text: (  # noqa: E731
                text in errors(found, "tenant", name).get(code, "")
            )
            await seen(client, sets("tenant"), reported)
            assert await pods(client, name) == set(), name

        await grows_past_the_limit_and_back(client)
        await create_available_neighbour(client, "after")
        for name in (*EXTREME_SETS, "grown"):
            await client.delete(SETS, name, namespace="tenant", as_type=Object)
        await seen(client, sets("tenant"), lambda found: not len(found))
        last = (await client.get(LEASES, LEASE, namespace=NAMESPACE, as_type=Lease)).spec
        assert (last.holder_identity, last.lease_transitions) == (
            first.holder_identity,
            first.lease_transitions,
        )
        assert await operator.probe("/healthz") == (200, "ok\n")
        assert (await operator.end())[0] == 0


def forged(name: str) -> dict[str, Any]:
    """A pod with the labels of a replica that cannot exist."""
    carried = {
        labels.MANAGED_BY: labels.OPERATOR,
        labels.PART_OF: name,
        labels.SET_REPLICA: str(HUGE - 1),
        labels.GROUP_REPLICA: str(HUGE - 1),
        labels.POD_INDEX: str(HUGE - 1),
    }
    containers = [{"name": "main", "image": "model:1"}]
    return {"metadata": {"name": "forged", "labels": carried}, "spec": {"containers": containers}}


async def grows_past_the_limit_and_back(client: Client) -> None:
    """By an update of the set, and by `/scale` of the set and of a clique: its pod stays, and no other pod is
    created."""
    before = await pods(client, "grown")

    async def count(resource: Any, name: str, replicas: int) -> None:
        await client.set_scale(resource, name, replicas, namespace="tenant")

    def reported(found: Cache[PodCliqueSet]) -> bool:
        return LIMIT in errors(found, "tenant", "grown")

    def current(found: Cache[PodCliqueSet]) -> bool:
        known = found.get("tenant", "grown")
        return (
            not reported(found)
            and known is not None
            and known.status.observed_generation == known.metadata.generation
        )

    for replicas in (HUGE, 1):
        await client.patch(
            SETS, "grown", {"spec": {"replicas": replicas}}, namespace="tenant", as_type=Object
        )
        await seen(client, sets("tenant"), reported if replicas == HUGE else current)
    for resource, name in ((SETS, "grown"), (CLIQUES, "grown-0-a")):
        await count(resource, name, HUGE)
        await seen(client, sets("tenant"), reported)
        assert before <= await pods(client, "grown")
        await count(resource, name, 1)
        await seen(client, sets("tenant"), current)
    assert len(await pods(client, "grown") - before) <= 1, (
        "replicas created before the operator saw the count are deleted"
    )
