"""Checks every version of every pod of a namespace, in the order in which the API server wrote them.

It uses a watch of its own, without the write replies that `World` applies to its caches out of order: the API
server sends every revision of a resource once and in order, no matter which client wrote it (operator,
scheduler, node, garbage collector, user), so that no state between two writes is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.client import Client
from grove.kube.client.resource import PODS
from tests.runnable import PodVersion, RunnablePods


class PodHistory:
    """Checks each version as it arrives, and keeps the violations."""

    def __init__(self) -> None:
        self._runnable = RunnablePods()
        self._broken: list[AssertionError] = []

    def saw(self, old: PodVersion | None, new: PodVersion | None) -> None:
        version = new or old
        assert version is not None
        try:
            self._runnable.saw(version.metadata.name, new)
        except AssertionError as broken:
            self._broken.append(broken)

    def check(self) -> None:
        """Raise if two pods of a clique and index could run at the same time."""
        if self._broken:
            raise self._broken[0]


@asynccontextmanager
async def one_runnable_pod_an_index(client: Client, namespace: str, patience: float) -> AsyncIterator[None]:
    """Assert at the end of the block that no index of a clique ever had two runnable pods during it."""
    history, cache = PodHistory(), Cache(PODS, PodVersion, namespace=namespace)
    cache.subscribe(history.saw)
    task = asyncio.create_task(Reflector(client, cache).run())
    try:
        async with asyncio.timeout(patience):
            await cache.synced.wait()
        yield
        history.check()
    finally:
        task.cancel()
        await asyncio.wait({task})
