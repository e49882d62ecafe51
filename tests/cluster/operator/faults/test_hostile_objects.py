"""Objects that a user with Kubernetes' `edit` role in one namespace can write do not stop the operator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    EVENTS,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    Resource,
)
from grove.local.cluster.lifecycle import LocalCluster
from tests.chart import Account, account, grant_lease_and_secret
from tests.cluster.operator.process.test_process import make_available
from tests.cluster.operator.scenarios.api_errors import says
from tests.cluster.operator.scenarios.shared_claims import DRIVER, devices, shared_by_pods
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, SETS
from tests.cluster.operator.support.processes import configuration, running
from tests.cluster.operator.support.workloads import small
from tests.cluster.operator.support.world import watching
from tests.cluster.webhooks.harness import eventually

pytestmark = pytest.mark.cluster

DEPTH = 1500


def deep_parameters() -> dict[str, Any]:
    """A claim's spec that requests one device, with deeply nested parameters."""
    deep = msgspec.Raw(b'{"a":' + b"[" * DEPTH + b"]" * DEPTH + b"}")
    opaque = {"driver": DRIVER, "parameters": deep}
    requests = [{"name": "one", "exactly": {"deviceClassName": DRIVER}}]
    return {"devices": {"requests": requests, "config": [{"requests": ["one"], "opaque": opaque}]}}


def deep_template(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"spec": deep_parameters()}}


async def post(client: Client, resource: Resource, body: dict[str, Any], namespace: str) -> None:
    """Create an object without decoding the reply."""
    await client.raw("POST", resource.path(namespace), msgspec.json.encode(body))


@pytest.fixture
async def home(client: Client, operator_account: Account, namespace: str) -> AsyncIterator[str]:
    """A namespace in which the operator may have its lease and its certificate, emptied after the test."""
    await grant_lease_and_secret(client, namespace)
    async with watching(client, operator_account.config, namespace):
        yield namespace


@pytest.fixture
async def tenant(cluster: LocalCluster, client: Client, namespace: str) -> AsyncIterator[Client]:
    """A client of a user with Kubernetes' role `edit` in the namespace."""
    await client.create(
        SERVICE_ACCOUNTS, {"metadata": {"name": "tenant"}}, namespace=namespace, as_type=Object
    )
    binding = {
        "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}],
    }
    await client.create(ROLE_BINDINGS, binding, namespace=namespace, as_type=Object)
    found = await account(client, cluster, namespace, "tenant")
    async with Client(found.config) as tenant:
        yield tenant


async def test_deep_claim_template_does_not_stop_operator(
    operator_account: Account,
    client: Client,
    tenant: Client,
    home: str,
    tmp_path: Path,
) -> None:
    async def written() -> bool:
        await post(tenant, RESOURCE_CLAIM_TEMPLATES, deep_template("deep"), home)
        return True

    skipped = {"key": f"{home}/deep", "reason": "it nests deeper than 200 levels"}
    async with running(tmp_path, operator_account.kubeconfig, configuration()) as operator:
        await operator.hear("working")
        await eventually(written)  # RBAC takes a moment to take effect
        await operator.hear("object skipped", **skipped)
        await make_available(client, home, "meanwhile")
        label = "resourceclaimtemplates.resource.k8s.io"
        found = await operator.metrics()
        assert found[f'grove_kube_undecodable_total{{resource="{label}"}}'] == 1
        assert (await operator.end())[0] == 0
    async with running(tmp_path, operator_account.kubeconfig, configuration()) as operator:
        await operator.hear("object skipped", **skipped)
        await operator.hear("working")
        await make_available(client, home, "afterwards")
        assert (await operator.end())[0] == 0


async def test_set_reports_undecodable_claim_template(world: World) -> None:
    async with devices(world), operating(world):
        await post(world.client, RESOURCE_CLAIM_TEMPLATES, deep_template("one"), world.namespace)
        body = shared_by_pods()
        del body["spec"]["template"]["resourceClaimTemplates"]
        await world.create(SETS, body)
        await world.until(lambda: says(world, CLIQUES, "few-0-worker", "nests deeper than 200 levels"))
        assert not says(world, CLIQUES, "few-0-worker", "there is no ResourceClaimTemplate")
        await world.client.raw("DELETE", RESOURCE_CLAIM_TEMPLATES.path(world.namespace, "one"))
        good = deep_template("one")
        del good["spec"]["spec"]["devices"]["config"]
        await world.client.create(RESOURCE_CLAIM_TEMPLATES, good, namespace=world.namespace, as_type=Object)
        await world.until_ready()


async def test_undecodable_set_gets_an_event(world: World) -> None:
    body = shared_by_pods()
    (own,) = body["spec"]["template"]["resourceClaimTemplates"]
    own["templateSpec"] = {"spec": deep_parameters()}
    await world.watch(EVENTS)
    async with operating(world):
        await post(world.client, SETS, body, world.namespace)
        await world.until(lambda: any(event.reason == "DecodeFailed" for event in world.all(EVENTS)))
        await world.create(SETS, small("other"))
        await world.until(lambda: world.get(SETS, "other").status.get("availableReplicas") == 1)
    (event,) = (event for event in world.all(EVENTS) if event.reason == "DecodeFailed")
    assert event.note.startswith(f"cannot decode PodCliqueSet {world.namespace}/few (it nests deeper")
    await world.client.raw("DELETE", SETS.path(world.namespace, "few"))
