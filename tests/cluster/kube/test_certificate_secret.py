"""Certificates in a Secret, the caBundle of webhook configurations, and calls of a real API server."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from grove.kube.certs.certificate_secret import (
    CertificateManager,
    parse_secret_data,
    publish_ca_bundle,
    secret_data,
)
from grove.kube.certs.certificates import (
    AUTHORITY_LIFETIME,
    ServingCredentials,
    issue_authority,
    issue_serving,
)
from grove.kube.certs.serving_context import ServingContext
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CONFIG_MAPS, MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Resource
from grove.kube.errors import ApiError

pytestmark = pytest.mark.cluster

HOSTS = ("localhost", "127.0.0.1")


def configuration(resource: Resource, name: str, port: int = 1, webhooks: int = 1) -> dict[str, Any]:
    """Webhooks for ConfigMaps of one namespace, which has the name of the configuration."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": f"w{index}.example.com",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/review"},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["configmaps"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 30,
            }
            for index in range(webhooks)
        ],
    }


@pytest.fixture(params=[VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS], ids=["validating", "mutating"])
async def resource(request: pytest.FixtureRequest, client: Client, namespace: str) -> AsyncIterator[Resource]:
    """A resource in which the test may create a configuration with the name of its namespace."""
    yield request.param
    await client.delete(request.param, namespace, as_type=Object)


@asynccontextmanager
async def reviewer(serving: ServingContext) -> AsyncIterator[int]:
    """A webhook that allows everything, with a warning."""

    async def review(request: web.Request) -> web.Response:
        review_request = (await request.json())["request"]
        answer = {"uid": review_request["uid"], "allowed": True, "warnings": ["seen"]}
        reply = web.json_response(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        )
        reply.force_close()  # so that the next call has a new handshake with the current certificate
        return reply

    app = web.Application()
    app.router.add_post("/review", review)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving.context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_ca_bundle_is_published_once_in_every_webhook(
    client: Client, namespace: str, resource: Resource
) -> None:
    body = configuration(resource, namespace, webhooks=2)
    created = await client.create(resource, body, as_type=Object)
    ca_bundle = issue_authority(datetime.now(UTC)).certificate
    assert await publish_ca_bundle(client, resource, namespace, ca_bundle)
    stored = await client.get(resource, namespace, as_type=dict)
    bundles = {webhook["clientConfig"]["caBundle"] for webhook in stored["webhooks"]}
    assert bundles == {base64.b64encode(ca_bundle).decode()}
    assert stored["metadata"]["resourceVersion"] != created.metadata.resource_version
    assert not await publish_ca_bundle(client, resource, namespace, ca_bundle)
    again = await client.get(resource, namespace, as_type=dict)
    assert again["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]


async def test_replicas_started_together_share_credentials(client: Client, namespace: str) -> None:
    servings = [ServingContext() for _ in range(3)]
    replicas = [
        CertificateManager(client, serving, namespace=namespace, secret="certs", hosts=HOSTS)
        for serving in servings
    ]
    dues = await asyncio.gather(*(replica.refresh() for replica in replicas))
    assert len(set(dues)) == 1
    assert all(serving.ready for serving in servings)
    stored = await client.get(SECRETS, "certs", namespace=namespace, as_type=dict)
    assert stored["type"] == "kubernetes.io/tls"
    assert parse_secret_data(stored["data"]) is not None


async def test_existing_secret_is_filled_and_keeps_other_data(client: Client, namespace: str) -> None:
    empty = {"metadata": {"name": "certs", "labels": {"by": "helm"}}, "data": {"note": "a2VlcA=="}}
    await client.create(SECRETS, empty, namespace=namespace, as_type=Object)
    await CertificateManager(
        client, ServingContext(), namespace=namespace, secret="certs", hosts=HOSTS
    ).refresh()
    stored = await client.get(SECRETS, "certs", namespace=namespace, as_type=dict)
    assert parse_secret_data(stored["data"]) is not None
    assert (stored["metadata"]["labels"], stored["data"]["note"]) == ({"by": "helm"}, "a2VlcA==")


async def test_no_admission_call_fails_during_ca_rotation(
    client: Client, namespace: str, resource: Resource
) -> None:
    now = datetime.now(UTC)
    old = issue_authority(now - AUTHORITY_LIFETIME * 0.7)
    before = ServingCredentials(old, issue_serving(old, HOSTS, now))
    secret = {"metadata": {"name": "certs"}, "data": secret_data(before)}
    await client.create(SECRETS, secret, namespace=namespace, as_type=Object)
    wall_clock = now - AUTHORITY_LIFETIME * 0.5  # the authority is not due yet
    serving = ServingContext()
    async with reviewer(serving) as port:
        await client.create(resource, configuration(resource, namespace, port), as_type=Object)
        certificate_manager = CertificateManager(
            client,
            serving,
            namespace=namespace,
            secret="certs",
            hosts=HOSTS,
            webhooks=[(resource, namespace)],
            propagation_delay=5.0,
            wall_clock=lambda: wall_clock,
        )
        await certificate_manager.refresh()
        await until_called(client, namespace)
        wall_clock = now
        rotation = asyncio.create_task(certificate_manager.refresh())
        calls = 0
        while not rotation.done():
            assert await is_reviewed(client, namespace)
            calls += 1
        await rotation
        assert await is_reviewed(client, namespace)
        assert calls > 2
    stored = await client.get(SECRETS, "certs", namespace=namespace, as_type=dict)
    after = parse_secret_data(stored["data"])
    assert after is not None
    assert after.previous_authorities == (old.certificate,)
    assert after.authority.certificate != old.certificate


async def is_reviewed(client: Client, namespace: str) -> bool:
    """Whether the API server called the webhook and got its answer; raises if the call failed."""
    body = b'{"metadata":{"name":"probe"}}'
    path = f"{CONFIG_MAPS.path(namespace)}?dryRun=All"
    reply = await client.raw("POST", path, body)
    return "Warning" in reply.headers


async def until_called(client: Client, namespace: str) -> None:
    """Repeat until the webhook is called: API servers do not report when they use a new configuration."""
    async with asyncio.timeout(120):
        while True:
            try:
                if await is_reviewed(client, namespace):
                    return
            except ApiError:
                continue
