"""Webhooks that do not answer: changes of sets are refused; deletion, the operator and other objects are not
affected."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, SERVICES
from grove.kube.errors import ApiError
from grove.local.cluster.lifecycle import LocalCluster
from grove.webhooks.registrations import account
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import good, registered, registering, replica, until_called
from tests.cluster.webhooks.test_authorizer import as_user, managed

pytestmark = pytest.mark.cluster

CHANGE = {"metadata": {"annotations": {"a": "b"}}}
RELEASE = {"metadata": {"finalizers": None}}


async def test_outage_blocks_only_changes_of_sets_by_users(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    connection, operator = config.load(cluster.kubeconfig), account(namespace)
    authorizer = {"enabled": True}
    async with AsyncExitStack() as stack:
        operator_client = await stack.enter_async_context(Client(as_user(connection, operator)))
        async with replica(connection, namespace, authorizer=authorizer) as webhooks:
            bodies = registered(webhooks.url, namespace, operator=operator, authorizer=True)
            await stack.enter_async_context(registering(client, bodies))
            await webhooks.until_ready()
            await until_called(client, namespace)
            for name in ("terminating", "active"):
                body = good(name)
                body["metadata"]["finalizers"] = ["example.com/held"]
                await client.create(SETS, body, namespace=namespace, as_type=Object)
            await client.delete(SETS, "terminating", namespace=namespace, as_type=Object)
        # From here on no webhook answers.
        with pytest.raises(ApiError, match="failed calling webhook"):
            await client.patch(SETS, "active", CHANGE, namespace=namespace, as_type=Object)
        await client.patch(SETS, "terminating", RELEASE, namespace=namespace, as_type=Object)
        await operator_client.patch(SETS, "active", RELEASE, namespace=namespace, as_type=Object)
        await operator_client.create(SERVICES, managed(SERVICES), namespace=namespace, as_type=Object)
        await operator_client.patch(SERVICES, "managed", CHANGE, namespace=namespace, as_type=Object)
        status = {"status": {"observedGeneration": 1}}
        await client.patch(SETS, "active", status, namespace=namespace, subresource="status", as_type=Object)
        await client.set_scale(SETS, "active", 2, namespace=namespace)
        unmanaged = managed(PODS)
        del unmanaged["metadata"]["labels"]
        await client.create(PODS, unmanaged, namespace=namespace, as_type=Object)
        await client.patch(PODS, "managed", CHANGE, namespace=namespace, as_type=Object)
        await client.delete(SETS, "active", namespace=namespace, as_type=Object)
