"""A running reflector on a real server, and a TCP proxy whose connections can be cut."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import CrdWaiter, Reflector
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import CONFIG_MAPS, Resource
from grove.local.cluster.lifecycle import LocalCluster


class ConfigMap(Struct, frozen=True, gc=False):
    """The fields of a ConfigMap that these tests read."""

    metadata: ObjectMeta
    data: dict[str, str] = {}


class WatchedCache:
    """A cache with a running reflector; counts how often each object was added, changed and removed."""

    def __init__(self, cache: Cache[ConfigMap]) -> None:
        self.cache = cache
        self.new: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self.gone: Counter[str] = Counter()
        self._tick = asyncio.Event()
        cache.subscribe(self._count)

    def _count(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        kind = self.new if old is None else self.gone if new is None else self.changed
        found = new or old
        assert found is not None
        kind[found.metadata.name] += 1
        self._tick.set()

    def data(self) -> dict[str, str]:
        """The content of the cache: the value `v` of every object."""
        return {found.metadata.name: found.data.get("v", "") for found in self.cache}

    async def until(self, condition: Callable[[], bool], seconds: float = 120) -> None:
        """Wait for the change that makes the condition true."""
        async with asyncio.timeout(seconds):
            while not condition():
                self._tick.clear()
                await self._tick.wait()


@asynccontextmanager
async def watching(
    client: Client,
    namespace: str | None,
    *,
    resource: Resource = CONFIG_MAPS,
    labels: str = "",
    crd_watch: CrdWaiter | None = None,
    streaming: bool = True,
    synced: bool = True,
) -> AsyncIterator[WatchedCache]:
    """A synced cache of the namespace's ConfigMaps (or of another resource with the same fields)."""
    live = WatchedCache(Cache(resource, ConfigMap, namespace=namespace, labels=labels))
    running = asyncio.create_task(
        Reflector(client, live.cache, crd_watch=crd_watch, streaming=streaming).run()
    )
    try:
        async with asyncio.timeout(120):
            await (live.cache.synced if synced else live.cache.synced_or_absent).wait()
        yield live
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def config_map(name: str, value: str = "", **labels: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "data": {"v": value},
    }


async def create_many(client: Client, namespace: str, names: Iterable[str], value: str = "") -> None:
    """Create ConfigMaps, 32 at a time."""
    await _each(
        names,
        lambda name: client.create(CONFIG_MAPS, config_map(name, value), namespace=namespace, as_type=Object),
    )


async def delete_many(client: Client, namespace: str, names: Iterable[str]) -> None:
    """Delete ConfigMaps, 32 at a time: thousands in one request may last longer than the server allows."""
    await _each(names, lambda name: client.delete(CONFIG_MAPS, name, namespace=namespace, as_type=Object))


async def _each(names: Iterable[str], do: Callable[[str], Awaitable[object]]) -> None:
    todo = iter(names)

    async def worker() -> None:
        for name in todo:
            await do(name)

    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(worker())


class Wire:
    """A TCP proxy to the API server: connections can be cut, refused (`is_down`), and sent to another
    port."""

    def __init__(self, server: str) -> None:
        self.lead_to(server)
        self._pairs: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_down = False
        self.port = 0

    def lead_to(self, server: str) -> None:
        """Send new connections to this server: after a restart it may listen on another port."""
        parts = urlsplit(server)
        self._target = (parts.hostname, parts.port)

    def cut(self) -> None:
        """Abort every connection at once, at any byte."""
        for writer in self._pairs:
            writer.transport.abort()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection."""
        if self.is_down:
            writer.transport.abort()
            return
        try:
            onward, back = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._pairs |= {writer, back}
        for source, sink in ((reader, back), (onward, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        self._pairs.discard(sink)
        sink.transport.abort()

    async def stop(self) -> None:
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)


@asynccontextmanager
async def wired(cluster: LocalCluster) -> AsyncIterator[tuple[Wire, Config]]:
    """A proxy to the cluster, and the configuration that uses it."""
    direct = config.load(cluster.kubeconfig)
    wire = Wire(direct.server)
    server = await asyncio.start_server(wire.accept, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire, msgspec.structs.replace(direct, server=f"https://127.0.0.1:{wire.port}")
    finally:
        server.close()
        await wire.stop()
