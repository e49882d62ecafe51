"""Serves external metrics to the cluster, as an adapter for Prometheus does in a production cluster.

The API server forwards `external.metrics.k8s.io` to a Service; one of type ExternalName leads to this
process. The HorizontalPodAutoscaler controller of Kubernetes reads the metrics there.
"""

from __future__ import annotations

import base64
import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import SERVICES, Resource
from tests.cluster.operator.support.objects import AnyObject
from tests.cluster.operator.support.processes import seen
from tests.kube.certificate_authority import Authority

API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
NAME = f"{VERSION}.{GROUP}"
_SERVICE, _NAMESPACE = "metrics-of-the-test", "default"


class Metrics(dict[str, float]):
    """The current values by the name of the metric; a request for another name gets 404."""

    async def describe(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{GROUP}/{VERSION}",
                "resources": [],
            }
        )

    async def answer(self, request: web.Request) -> web.Response:
        name = request.match_info["metric"]
        if name not in self:
            raise web.HTTPNotFound(text=f"no metric {name}")
        item = {
            "metricName": name,
            "metricLabels": {},
            "timestamp": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "value": f"{round(self[name] * 1000)}m",
        }
        body = {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "items": [item]}
        return web.json_response(body)


@asynccontextmanager
async def serving_metrics(client: Client) -> AsyncIterator[Metrics]:
    """Metrics, served and registered with the API server until the block is left."""
    metrics, authority = Metrics(), Authority()
    context = authority.server_context(authority.issue(f"{_SERVICE}.{_NAMESPACE}.svc"))
    context.verify_mode = ssl.CERT_NONE  # the API server's client certificate is of another CA
    application = web.Application()
    root = f"/apis/{GROUP}/{VERSION}"
    application.router.add_get(root, metrics.describe)
    application.router.add_get(root + "/namespaces/{namespace}/{metric}", metrics.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port: int = runner.addresses[0][1]
        async with _registered(client, port, authority.pem):
            yield metrics
    finally:
        await runner.cleanup()


@asynccontextmanager
async def _registered(client: Client, port: int, authority: bytes) -> AsyncIterator[None]:
    service = {"metadata": {"name": _SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    await client.create(SERVICES, service, namespace=_NAMESPACE, as_type=Object)
    spec: dict[str, Any] = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "caBundle": base64.b64encode(authority).decode(),
        "service": {"name": _SERVICE, "namespace": _NAMESPACE, "port": port},
    }
    known = Cache(API_SERVICES, AnyObject)
    try:
        await client.create(API_SERVICES, {"metadata": {"name": NAME}, "spec": spec}, as_type=Object)
        await seen(client, known, lambda all_: _available(all_.get("", NAME)))
        yield
    finally:  # before the server stops: an API group without a server blocks the deletion of every namespace
        await client.delete(API_SERVICES, NAME, as_type=Object)
        await client.delete(SERVICES, _SERVICE, namespace=_NAMESPACE, as_type=Object)


def _available(found: AnyObject | None) -> bool:
    return found is not None and found.condition("Available") == "True"
