"""Updates of terminating objects that a user's finalizer keeps: changes of their spec are validated, and
removing the finalizer is always possible."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from grove.dynamo.api import crd_definitions
from grove.kube.auth import config
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.kube.client.resource import Resource
from grove.kube.errors import ApiError, ServiceUnavailable
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.dynamo import GRAPHS
from grove.webhooks.conversion.registration import CRD, is_ours
from tests.cluster.conftest import PATIENCE, apply, established
from tests.cluster.operator.support.objects import SETS, AnyObject
from tests.cluster.operator.support.processes import seen
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
FINALIZERS = ["example.com/test"]
_STEADY = 20
"""Requests after which the API server has loaded a change of the CRD."""


async def terminating(client: Client, resource: Resource, body: Body, namespace: str | None) -> Body:
    """The object `held`, deleted and kept by a finalizer."""
    body = {**body, "metadata": {"name": "held", "finalizers": FINALIZERS}}
    created: Body = await client.create(resource, body, namespace=namespace, as_type=dict)
    await client.delete(resource, "held", namespace=namespace, as_type=Object)
    return created


async def patch_refusal(client: Client, resource: Resource, patch: Body, namespace: str | None) -> str:
    with pytest.raises(ApiError) as error:
        await client.patch(resource, "held", patch, namespace=namespace, as_type=Object)
    return error.value.status.message


async def remove_finalizers(client: Client, resource: Resource, namespace: str | None) -> None:
    await client.patch(
        resource, "held", {"metadata": {"finalizers": None}}, namespace=namespace, as_type=Object
    )


async def test_terminating_object_refuses_an_invalid_spec(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    for definition in crd_definitions.all_definitions():
        await apply(client, definition)
        async with asyncio.timeout(PATIENCE):
            await established(client, definition["metadata"]["name"])
    bad_level = {"domain": "zone", "key": "example.com/rack"}
    duplicate_key = {"levels": [{"domain": "rack", "key": "example.com/rack"}, bad_level]}
    cases: list[tuple[Resource, Body, str | None, dict[str, Any], str]] = [
        (
            SETS,
            good(),
            namespace,
            {"template": {"terminationDelay": "soon"}},
            "spec.template.terminationDelay",
        ),
        (GRAPHS, deployment(component()), namespace, {"components": [component("More")]}, "spec.components"),
        (TOPOLOGIES, topology("held", "rack"), None, duplicate_key, "unique across all levels"),
    ]
    async with admitting(client, config.load(cluster.kubeconfig), namespace, **SWITCHES):
        await asyncio.wait_for(until_converting(client, namespace), PATIENCE)
        for resource, body, place, spec, expected in cases:
            await terminating(client, resource, body, place)
            assert expected in await patch_refusal(client, resource, {"spec": spec}, place)
            await remove_finalizers(client, resource, place)


async def until_converting(client: Client, namespace: str) -> None:
    """Until the CRD has its conversion webhook and the API server has loaded it: meanwhile, it refuses
    requests for that kind at times."""
    definitions = Cache(CRDS, AnyObject, fields=f"metadata.name={CRD}")
    await seen(client, definitions, lambda found: any(is_ours(each.spec["conversion"]) for each in found))
    body = {**deployment(component()), "metadata": {"name": "probe"}}
    for _ in range(_STEADY):
        with suppress(ServiceUnavailable):
            await client.create(GRAPHS, body, namespace=namespace, as_type=Object, dry_run=True)


async def test_finalizer_is_removable_while_webhooks_are_down(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    """No webhook listens at the registered address, and the set is invalid by the current rules as well."""
    body = good()
    body["spec"]["template"]["terminationDelay"] = "soon"
    await terminating(client, SETS, body, namespace)
    async with registering(client, registered("https://127.0.0.1:1", namespace)):
        await asyncio.wait_for(until_calls_fail(client, namespace), PATIENCE)
        assert "failed calling webhook" in await patch_refusal(
            client, SETS, {"spec": {"replicas": 2}}, namespace
        )
        await remove_finalizers(client, SETS, namespace)


async def until_calls_fail(client: Client, namespace: str) -> None:
    """Sends requests until the API server has loaded the webhook configurations and calls the webhooks."""
    while True:
        try:
            await client.create(SETS, good(), namespace=namespace, as_type=Object, dry_run=True)
        except ApiError:
            return
        await asyncio.sleep(0.05)
