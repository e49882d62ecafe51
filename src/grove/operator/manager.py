"""Everything that runs in an operator: watches, the loop, leadership."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import structlog

from grove.kube.arrivals import Arrivals
from grove.kube.client import Client
from grove.kube.executor import Executor
from grove.kube.reflector import Reflector
from grove.kube.store import CacheStore
from grove.kube.transport import Transport
from grove.operator.caches import Caches
from grove.operator.controller import Controller

log = structlog.get_logger("grove.operator")


class Manager:
    """One operator on one transport. `run` returns when it is cancelled."""

    def __init__(self, transport: Transport, *, workers: int = 64) -> None:
        self._transport = transport
        self._workers = workers
        self.caches = Caches()
        self.synced = asyncio.Event()

    async def run(self, writes: Transport | None = None) -> None:
        """Watch, and act as soon as everything that exists is known. `writes` may be fenced."""
        executor = Executor(
            writes or self._transport, self.caches.resources, store=CacheStore(self.caches.all)
        )
        controller = Controller(self.caches, executor, workers=self._workers)
        async with AsyncExitStack() as stack:
            watches = await stack.enter_async_context(asyncio.TaskGroup())
            self._watch(watches)
            for cache in self.caches.all:
                await cache.synced.wait()
            self.synced.set()
            log.info("working", key="operator", action="start", reason="everything that exists is known")
            controller.queue.start()
            try:
                await asyncio.Event().wait()
            finally:
                await controller.queue.stop()

    def _watch(self, tasks: asyncio.TaskGroup) -> None:
        client = Client(self._transport)
        arrivals = Arrivals()
        tasks.create_task(arrivals.run(client))
        for cache in self.caches.all:
            tasks.create_task(Reflector(client, cache, arrivals=arrivals).run())
