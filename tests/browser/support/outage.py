"""A kubeconfig that leads through a proxy, so that the API server can be away for one program only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.kube.reflector_harness import Wire


class Outage:
    """The way to the API server."""

    def __init__(self, wire: Wire, kubeconfig: Path) -> None:
        self._wire, self.kubeconfig = wire, str(kubeconfig)

    def begin(self) -> None:
        """Cut all connections, and refuse new ones."""
        self._wire.is_down = True
        self._wire.cut()

    def end(self) -> None:
        """Accept connections again."""
        self._wire.is_down = False


@asynccontextmanager
async def way_to(cluster: LocalCluster, folder: Path) -> AsyncIterator[Outage]:
    """The proxy, and a kubeconfig that uses it."""
    body = json.loads(cluster.kubeconfig.read_text())
    place = body["clusters"][0]["cluster"]
    wire = Wire(place["server"])
    server = await asyncio.start_server(wire.accept, "127.0.0.1", 0)
    place["server"] = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    file = folder / "kubeconfig"
    file.write_text(json.dumps(body))
    try:
        yield Outage(wire, file)
    finally:
        server.close()
        await wire.stop()
        await server.wait_closed()
