"""Admission of DynamoGraphDeployments on the real API server: defaults, errors, and no field is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from grove.dynamo.api import crd_definitions
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.errors import ApiError
from grove.local.cluster.lifecycle import LocalCluster
from grove.operator.caches.dynamo import GRAPHS
from tests.cluster.conftest import PATIENCE, apply, established
from tests.cluster.webhooks.harness import admitting, eventually, refusal
from tests.dynamo.builders import component, deployment, manifest

pytestmark = pytest.mark.cluster

OLDER = replace(GRAPHS, version="v1alpha1")
SWITCHES = {"topologyAwareScheduling": {"enabled": True}, "dynamo": {"enabled": True}}


async def test_graphs_of_both_versions_are_defaulted_and_checked(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    for definition in crd_definitions.all_definitions():
        await apply(client, definition)
        async with asyncio.timeout(PATIENCE):
            await established(client, definition["metadata"]["name"])
    async with admitting(client, config.load(cluster.kubeconfig), namespace, **SWITCHES):
        body = deployment(component())
        body["metadata"] = {"name": "app"}
        created = await client.create(GRAPHS, body, namespace=namespace, as_type=dict)
        assert created["metadata"]["annotations"]["nvidia.com/workload-provider"] == "grove"
        assert created["spec"]["components"][0]["replicas"] == 1
        older = await eventually(lambda: converted(client, namespace))
        assert older["spec"]["services"]["Worker"]["replicas"] == 1

        superseded = manifest("superseded")
        superseded["metadata"] = {"name": "old"}
        message = await refusal(client, OLDER, superseded, namespace=namespace)
        for field in ("spec.topologyConstraints:", "spec.topologyConstraints.enabled:", "spec.services:"):
            assert field in message
        unknown = deployment(component(replicaz=2))
        unknown["metadata"] = {"name": "unknown"}
        message = await refusal(client, GRAPHS, unknown, namespace=namespace)
        assert "spec.components[0].replicaz: Forbidden: unknown field; did you mean replicas?" in message
        assert "cannot be added" in await _update_refusal(client, namespace)


async def converted(client: Client, namespace: str) -> dict[str, Any] | None:
    """The object in v1alpha1, once the API server has loaded the conversion webhook."""
    try:
        found = await client.get(OLDER, "app", namespace=namespace, as_type=dict)
    except ApiError:
        return None
    return found if "services" in found["spec"] else None


async def _update_refusal(client: Client, namespace: str) -> str:
    patch = {"spec": {"components": [component(), component("More")]}}
    with pytest.raises(ApiError, match="denied the request") as refused:
        await client.patch(GRAPHS, "app", patch, namespace=namespace, as_type=dict)
    return str(refused.value)
