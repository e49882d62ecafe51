"""The rows of a table of watches: which event enqueues which keys, and after which delay.

Each kind of key has one table: `workload_watches`, `topology_watches`, `domain_watches`, `graph_watches`, and
`quota_watches` for keys whose writes a quota rejected. A row says what it listens to, to which events it
reacts, which keys follow from an event, and when these are due. Rows only look up: they change no state
other than that of their delays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol

from msgspec import Struct

from grove.kube.cache.cache import Cache
from grove.operator.caches.predicates import Predicate
from grove.operator.watches.enqueue_slices import FanOut, SlicedEnqueuer

Subscribe = Callable[[Callable[..., None]], object]
"""Subscribes a handler to events that are no changes of cached objects: a kind is served, nodes changed."""
KeysOfEvent = Callable[..., Iterable[Hashable]]
"""The keys that follow from an event; a `FanOut` stands for many of them, which are due at once."""
DelayOfKey = Callable[..., float]
"""The seconds until a key is due, from the event and the key."""


class Enqueue(Protocol):
    """Puts a key into the work queue, now or at a time of the loop's clock."""

    def __call__(self, key: Any, at: float = ..., /) -> None:
        """Enqueue the key."""
        ...


class Watch(Struct, frozen=True):
    """One row. An event of a cache is the old and the new state of an object."""

    source: Cache[Any] | Subscribe
    keys: KeysOfEvent
    when: Predicate | None = None
    """To which events it reacts; None: to all of them, also to changes of the status."""
    delay: float | DelayOfKey = 0.0
    replay: bool = False
    """Whether the objects that exist at the start are handled as if they were created."""
    reset_backoff: bool = False
    """Whether the next failure of a key counts as its first: the cause of its failures has changed."""


def register(
    watches: Iterable[Watch],
    enqueue: Enqueue,
    reset_backoff: Callable[[Any], None] = lambda _: None,
) -> None:
    """Subscribe all rows in their order."""
    slices = SlicedEnqueuer(enqueue)
    for watch in watches:
        handler = _handler(watch, enqueue, reset_backoff if watch.reset_backoff else None, slices)
        if isinstance(watch.source, Cache):
            for found in watch.source if watch.replay else ():
                handler(None, found)
            watch.source.subscribe(handler)
        else:
            watch.source(handler)


def _handler(
    watch: Watch, enqueue: Enqueue, reset_backoff: Callable[[Any], None] | None, slices: SlicedEnqueuer
) -> Callable[..., None]:
    """The handler of one row. Pods have thousands of events a second: it does no more than it must."""
    when, keys, delay = watch.when, watch.keys, watch.delay

    def handle(*event: Any) -> None:
        if when is not None and not when(*event):
            return
        for key in keys(*event):
            if isinstance(key, FanOut):
                slices.start(key.owner, key.keys)
                continue
            if reset_backoff is not None:
                reset_backoff(key)
            pause = delay(*event, key) if callable(delay) else delay
            if pause > 0:
                enqueue(key, asyncio.get_running_loop().time() + pause)
            else:
                enqueue(key)

    return handle
