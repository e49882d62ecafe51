"""Objects that terminate, held by a finalizer of their author: their spec is validated like any other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from grove.dynamo.api import crd_definitions
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import Resource
from grove.kube.errors import ApiError
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.dynamo import GRAPHS
from tests.cluster.conftest import PATIENCE, apply, established
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import (
    TOPOLOGIES,
    Body,
    admitting,
    good,
    registered,
    registering,
    topology,
)
from tests.dynamo.builders import component, deployment

pytestmark = pytest.mark.cluster

SWITCHES = {"topologyAwareScheduling": {"enabled": True}, "dynamo": {"enabled": True}}
MINE = ["example.com/mine"]


async def terminating(client: Client, resource: Resource, body: Body, namespace: str | None) -> Body:
    """The object, deleted and kept by a finalizer of its author."""
    body = {**body, "metadata": {"name": "held", "finalizers": MINE}}
    made: Body = await client.create(resource, body, namespace=namespace, as_type=dict)
    await client.delete(resource, "held", namespace=namespace, as_type=Object)
    return made


async def refused(client: Client, resource: Resource, patch: Body, namespace: str | None) -> str:
    with pytest.raises(ApiError) as error:
        await client.patch(resource, "held", patch, namespace=namespace, as_type=Object)
    return error.value.status.message


async def let_go(client: Client, resource: Resource, namespace: str | None) -> None:
    await client.patch(
        resource, "held", {"metadata": {"finalizers": None}}, namespace=namespace, as_type=Object
    )


async def test_terminating_objects_refuse_invalid_specs_and_let_finalizers_go(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    for definition in crd_definitions.all_definitions():
        await apply(client, definition)
        async with asyncio.timeout(PATIENCE):
            await established(client, definition["metadata"]["name"])
    bad_level = {"domain": "zone", "key": "example.com/rack"}
    twice = {"levels": [{"domain": "rack", "key": "example.com/rack"}, bad_level]}
    cases: list[tuple[Resource, Body, str | None, dict[str, Any], str]] = [
        (
            SETS,
            good(),
            namespace,
            {"template": {"terminationDelay": "soon"}},
            "spec.template.terminationDelay",
        ),
        (GRAPHS, deployment(component()), namespace, {"components": [component("More")]}, "spec.components"),
        (TOPOLOGIES, topology("held", "rack"), None, twice, "unique across all levels"),
    ]
    async with admitting(client, config.load(cluster.kubeconfig), namespace, **SWITCHES):
        for resource, body, place, spec, words in cases:
            await terminating(client, resource, body, place)
            assert words in await refused(client, resource, {"spec": spec}, place)
            await let_go(client, resource, place)


async def test_finalizers_of_terminating_sets_go_without_an_operator(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    """Nothing answers at the address of the webhooks. The set is invalid by today's rules as well."""
    body = good()
    body["spec"]["template"]["terminationDelay"] = "soon"
    await terminating(client, SETS, body, namespace)
    async with registering(client, registered("https://127.0.0.1:1", namespace)):
        await asyncio.wait_for(unanswered(client, namespace), PATIENCE)
        assert "failed calling webhook" in await refused(client, SETS, {"spec": {"replicas": 2}}, namespace)
        await let_go(client, SETS, namespace)


async def unanswered(client: Client, namespace: str) -> None:
    """Until the API server calls the webhooks, which no event tells."""
    while True:
        try:
            await client.create(SETS, good(), namespace=namespace, as_type=Object, dry_run=True)
        except ApiError:
            return
        await asyncio.sleep(0.05)
