"""Changes to nodes while a test runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from grove.kube.client.decoding import Object
from grove.kube.client.resource import NODES
from tests.cluster.operator.support.harness import World


@asynccontextmanager
async def cordoned(world: World, nodes: Iterable[str]) -> AsyncIterator[None]:
    """Make nodes unschedulable until the block is left."""
    for name in nodes:
        await world.client.patch(NODES, name, {"spec": {"unschedulable": True}}, as_type=Object)
    try:
        yield
    finally:
        for name in nodes:
            await world.client.patch(NODES, name, {"spec": {"unschedulable": None}}, as_type=Object)
