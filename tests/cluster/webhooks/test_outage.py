"""When nobody answers: what is refused, what passes all the same, and that it ends by itself."""

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


async def test_an_outage_blocks_neither_deletion_nor_the_operator_nor_others(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    connection, operator = config.load(cluster.kubeconfig), account(namespace)
    authorizer = {"enabled": True}
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(Client(as_user(connection, operator)))
        async with replica(connection, namespace, authorizer=authorizer) as found:
            wanted = registered(found.url, namespace, operator=operator, authorizer=True)
            await stack.enter_async_context(registering(client, wanted))
            await found.until_ready()
            await until_called(client, namespace)
            for name in ("leaving", "staying"):
                body = good(name)
                body["metadata"]["finalizers"] = ["example.com/held"]
                await client.create(SETS, body, namespace=namespace, as_type=Object)
            await client.delete(SETS, "leaving", namespace=namespace, as_type=Object)
        # From here on nobody answers.
        with pytest.raises(ApiError, match="failed calling webhook"):
            await client.patch(SETS, "staying", CHANGE, namespace=namespace, as_type=Object)
        await client.patch(SETS, "leaving", RELEASE, namespace=namespace, as_type=Object)
        await ours.patch(SETS, "staying", RELEASE, namespace=namespace, as_type=Object)
        await ours.create(SERVICES, managed(SERVICES), namespace=namespace, as_type=Object)
        await ours.patch(SERVICES, "managed", CHANGE, namespace=namespace, as_type=Object)
        status = {"status": {"observedGeneration": 1}}
        await client.patch(SETS, "staying", status, namespace=namespace, subresource="status", as_type=Object)
        await client.set_scale(SETS, "staying", 2, namespace=namespace)
        stranger = managed(PODS)
        del stranger["metadata"]["labels"]
        await client.create(PODS, stranger, namespace=namespace, as_type=Object)
        await client.patch(PODS, "managed", CHANGE, namespace=namespace, as_type=Object)
        await client.delete(SETS, "staying", namespace=namespace, as_type=Object)
