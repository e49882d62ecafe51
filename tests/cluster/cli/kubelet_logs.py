"""A server of the kubelet's log API, to which the nodes of the cluster point: KWOK's nodes run no containers.

The API server reads logs from it as from any kubelet: `GET /containerLogs/NAMESPACE/POD/CONTAINER`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES


class KubeletLogs:
    """The logs of containers by pod, and of their runs before by pod; tests add lines while they are read."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {}
        self.previous: dict[str, list[str]] = {}
        self.ended: set[str] = set()
        self.broken: set[str] = set()
        """Pods whose log breaks off once, after the lines that there are."""
        self.requests: list[web.Request] = []
        self._changed = asyncio.Condition()

    async def add(self, pod: str, *lines: str) -> None:
        """Append lines to a log."""
        async with self._changed:
            self.lines.setdefault(pod, []).extend(lines)
            self._changed.notify_all()

    async def end(self, *pods: str) -> None:
        """The containers of these pods write nothing more."""
        async with self._changed:
            self.ended |= set(pods)
            self._changed.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One log."""
        self.requests.append(request)
        pod, query = request.match_info["pod"], request.query
        if request.match_info["container"] != "main":
            return web.Response(status=400, text="no such container")
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if "previous" in query:
            await response.write(_text(self.previous.get(pod, [])))
            return response
        sent = max(0, len(self.lines.get(pod, [])) - int(query.get("tailLines", 1_000_000)))
        while True:
            lines = self.lines.get(pod, [])
            if lines[sent:]:
                await response.write(_text(lines[sent:]))
                sent = len(lines)
            if pod in self.broken:
                self.broken.discard(pod)
                assert request.transport is not None
                request.transport.abort()
                return response
            if "follow" not in query or pod in self.ended:
                return response
            async with self._changed:
                if len(self.lines.get(pod, [])) == sent and pod not in self.ended:
                    await self._changed.wait()


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


@asynccontextmanager
async def serving_logs(client: Client, certificates: Path) -> AsyncIterator[KubeletLogs]:
    """Serves logs for all nodes until the block is left. `certificates`: folder of the cluster's own."""
    logs, app = KubeletLogs(), web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", logs.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificates / "serving.crt", certificates / "serving.key")
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    nodes = [node.metadata.name for node in (await client.list(NODES, as_type=Object)).items]
    try:
        await _point(client, nodes, runner.addresses[0][1])
        yield logs
    finally:
        await _point(client, nodes, None)
        await runner.cleanup()


async def _point(client: Client, nodes: list[str], port: int | None) -> None:
    """Let nodes report the port of their kubelet."""
    endpoints = {"kubeletEndpoint": {"Port": port}} if port is not None else None
    patch = {"status": {"daemonEndpoints": endpoints}}
    await asyncio.gather(
        *(client.patch(NODES, name, patch, subresource="status", as_type=Object) for name in nodes)
    )
