"""The floor: an aiohttp loop that posts bytes and reads bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import aiohttp
import msgspec

from bench.kube.sample import NO_SCHEDULER, metered, pod
from grove.kube.auth import config, tls


async def create(kubeconfig: str, namespace: str, count: int, in_flight: int) -> None:
    """No types, no retries, no metrics: encode, post, read, discard."""
    found = config.load(Path(kubeconfig))
    certificate = (await found.credentials.current()).certificate
    authority = found.authority.read() if found.authority else None
    trust = tls.context(authority, certificate, insecure=False)
    url = f"{found.server}/api/v1/namespaces/{namespace}/pods"
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, limit=0)) as session:

        async def worker(names: Iterator[str]) -> None:
            for name in names:
                body = msgspec.json.encode(pod(name, namespace, NO_SCHEDULER))
                async with session.post(url, data=body, headers=headers) as reply:
                    await reply.read()
                    assert reply.status == 201

        await metered(worker, count, in_flight)
