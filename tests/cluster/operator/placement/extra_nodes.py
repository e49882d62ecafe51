"""Nodes that a test adds to the cluster, for its own pods only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES

SLOT = "example.com/slot"
ROOM = "example.com/room"


class Room:
    """Nodes with a label of their own, each with a slot for one pod, or one node with many slots."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name
        self.nodes: list[str] = []
        self._slots = 0

    async def grow(self, count: int, labels: Mapping[str, str] | None = None) -> None:
        """Add so many nodes, one after another."""
        for _ in range(count):
            await self._create_node(1, labels or {})

    async def widen(self, count: int) -> None:
        """Add so many slots to the only node, at once."""
        self._slots += count
        if not self.nodes:
            await self._create_node(self._slots, {})
            return
        slots = {SLOT: str(self._slots)}
        body = {"status": {"capacity": slots, "allocatable": slots}}
        await self._client.patch(NODES, self.nodes[0], body, subresource="status", as_type=Object)

    async def _create_node(self, slots: int, labels: Mapping[str, str]) -> None:
        name = f"{self.name}-{len(self.nodes)}"
        capacity = {"cpu": "8", "memory": "64Gi", "pods": "110", SLOT: str(slots)}
        own = {ROOM: self.name, "kubernetes.io/hostname": name}
        body = {
            "metadata": {"name": name, "labels": {**own, **labels}},
            "status": {"capacity": capacity, "allocatable": capacity},
        }
        await self._client.create(NODES, body, as_type=Object)
        self.nodes.append(name)

    def confine(self, body: dict[str, Any]) -> dict[str, Any]:
        """The set, with pods that go to these nodes only and need a slot each."""
        body["metadata"]["name"] = self.name
        for clique in body["spec"]["template"]["cliques"]:
            spec = clique["spec"]["podSpec"]
            spec["affinity"] = {}
            spec["nodeSelector"] = {ROOM: self.name}
            for container in spec["containers"]:
                container["resources"] = {"limits": {SLOT: "1"}}
        return body


@asynccontextmanager
async def room(client: Client, name: str) -> AsyncIterator[Room]:
    """Nodes that exist until the block is left."""
    found = Room(client, name)
    try:
        yield found
    finally:
        for node in found.nodes:
            await client.delete(NODES, node, as_type=Object)
