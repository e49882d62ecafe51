"""Records which keys a table of watches enqueues, and after which delay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable

import msgspec

from grove.kube.cache.cache import Cache
from grove.operator.watches.table import Watch, register

Delays = dict[Hashable, float]


class EnqueuedKeys:
    """A registered table, with the keys that it enqueues and their delays in seconds."""

    def __init__(self, watches: Iterable[Watch]) -> None:
        self._delays: Delays = {}
        self.reset: list[Hashable] = []
        register(watches, self._enqueue, self.reset.append)

    def _enqueue(self, key: Hashable, at: float = 0.0) -> None:
        delay = round(at - asyncio.get_running_loop().time(), 1) if at else 0.0
        self._delays[key] = min(delay, self._delays.get(key, delay))

    def take(self) -> Delays:
        """The keys that were enqueued since the last call."""
        taken, self._delays = self._delays, {}
        return taken

    def after(self, act: Callable[..., object], *arguments: object) -> Delays:
        """The keys that this call enqueues."""
        self._delays = {}
        act(*arguments)
        return self.take()


def changed(
    cache: Cache, old: object, version: int, kind: str = "MODIFIED", **fields: object
) -> Callable[[], None]:
    """Applies an event about an object with these fields, of the object or of its metadata."""
    meta = {name: fields.pop(name) for name in list(fields) if hasattr(old.metadata, name)}
    metadata = msgspec.structs.replace(old.metadata, resource_version=str(version), **meta)
    new = msgspec.structs.replace(old, metadata=metadata, **fields)
    return lambda: cache.apply_event(kind, new)
