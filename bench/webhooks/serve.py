"""One server with TLS, `grove` or `bare`: prints its address and CA, then serves."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime

from aiohttp import web

from grove.kube.auth.config import Config
from grove.kube.auth.credentials import StaticCredentials
from grove.kube.certs.certificates import issue_authority, issue_serving
from grove.kube.certs.serving_context import ServingContext
from grove.kube.client.client import Client
from grove.kube.server.refusals import Refusals
from grove.operator import python_gc
from grove.operator.caches.registry import Caches
from grove.rules.model import Facts
from grove.webhooks import server
from grove.webhooks.cluster_facts import ClusterFacts
from grove.webhooks.registrations import Path
from grove.webhooks.reviewer import Reviewer


def ours() -> web.AppRunner:
    """The operator's webhook server with empty caches and no API server."""
    client = Client(Config("https://127.0.0.1:1", StaticCredentials()))
    refusals = Refusals("webhooks")
    reviewer = Reviewer(ClusterFacts(Caches(), client, Facts()))
    return server.runner(server.application(refusals, reviewer), refusals)


def bare() -> web.AppRunner:
    """Decodes the review and admits it."""

    async def answer(request: web.Request) -> web.Response:
        uid = json.loads(await request.read())["request"]["uid"]
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        text = json.dumps({**body, "response": {"uid": uid, "allowed": True}})
        return web.Response(text=text, content_type="application/json")

    application = web.Application(client_max_size=2**23)
    for path in (Path.DEFAULT_SET, Path.VALIDATE_SET):
        application.router.add_post(path, answer)
    return web.AppRunner(application, access_log=None)


async def main(name: str) -> None:
    python_gc.raise_thresholds()  # as the operator does
    now = datetime.now(UTC)
    authority, serving = issue_authority(now), ServingContext()
    serving.use(issue_serving(authority, ("127.0.0.1",), now))
    runner = {"grove": ours, "bare": bare}[name]()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving.context).start()
    place = {"port": runner.addresses[0][1], "trust": authority.certificate.decode()}
    print(json.dumps(place), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
