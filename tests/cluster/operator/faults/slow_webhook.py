"""A third party's admission webhook, served by the test: it admits the pods of a namespace after a pause."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import PODS, VALIDATING_WEBHOOKS
from grove.kube.errors import KubeError
from tests.kube.certificate_authority import Authority

NAME = "slow.example.com"


class SlowWebhook:
    """Admits every pod after `pause` returns; counts the reviews that have started."""

    def __init__(self, pause: Callable[[], Awaitable[object]]) -> None:
        self.pause = pause
        self.reviews = 0

    async def review(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.reviews += 1
        if not body["request"].get("dryRun"):
            await self.pause()
        reply = {"uid": body["request"]["uid"], "allowed": True}
        return web.json_response({"apiVersion": body["apiVersion"], "kind": body["kind"], "response": reply})


@asynccontextmanager
async def slow_webhook(
    client: Client, namespace: str, pause: Callable[[], Awaitable[object]], *, timeout: int = 30
) -> AsyncIterator[SlowWebhook]:
    """The webhook, served, registered for pods of the namespace, and called by the API server."""
    webhook, authority = SlowWebhook(pause), Authority()
    application = web.Application()
    application.router.add_post("/", webhook.review)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(
        runner, "127.0.0.1", 0, ssl_context=authority.server_context(authority.issue("localhost"))
    )
    await site.start()
    name = f"slow-{namespace}"
    try:
        url = f"https://127.0.0.1:{runner.addresses[0][1]}/"
        body = _registration(name, namespace, url, authority, timeout)
        await client.create(VALIDATING_WEBHOOKS, body, as_type=Object)
        await _until_called(client, namespace, webhook)
        yield webhook
    finally:
        await client.delete(VALIDATING_WEBHOOKS, name, as_type=Object)
        await runner.cleanup()


def _registration(
    name: str, namespace: str, url: str, authority: Authority, timeout: int
) -> dict[str, object]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    webhook = {
        "name": NAME,
        "clientConfig": {"url": url, "caBundle": base64.b64encode(authority.pem).decode()},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": timeout,
    }
    return {"metadata": {"name": name}, "webhooks": [webhook]}


async def _until_called(client: Client, namespace: str, webhook: SlowWebhook) -> None:
    """API servers do not report when a webhook configuration takes effect: try dry-run creates until then."""
    pod = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "main", "image": "model:1"}]}}
    async with asyncio.timeout(60):
        while not webhook.reviews:
            try:
                await client.create(PODS, pod, namespace=namespace, as_type=Object, dry_run=True)
            except KubeError:
                await asyncio.sleep(0.05)
