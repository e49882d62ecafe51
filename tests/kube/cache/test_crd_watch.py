"""What ends the wait for a kind that is not served, apart from its CRD."""

from __future__ import annotations

import asyncio

from grove.kube.cache.crd_watch import CrdWatch
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS
from tests.kube.cache.reflector_harness import SILENT
from tests.kube.scripted_server import close_connection, serve


async def test_lost_connection_ends_wait_for_kind() -> None:
    """A restarted API server may serve other versions of built-in kinds."""
    crd_watch = CrdWatch()
    waiting = asyncio.create_task(crd_watch.wait(PODS, 60))
    await asyncio.sleep(0)  # it waits now
    async with serve() as server, Client(server.config()) as client:
        server.script = [close_connection, SILENT]
        watching = asyncio.create_task(crd_watch.run(client))
        try:
            async with asyncio.timeout(30):
                assert await waiting
        finally:
            watching.cancel()
            await asyncio.wait({watching})
