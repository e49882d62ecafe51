"""Enqueues many keys in slices: a set may have 50,000 replicas, and must not block the event loop.

The first slice is enqueued at once, so that small sets have no delay. The rest follows slice by slice, with a
turn of the event loop in between. If the same owner starts again meanwhile, all of its keys are enqueued once
more afterwards: keys that were enqueued before the latest change are enqueued after it, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import chain, islice

from msgspec import Struct

from grove import timing
from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.caches.registry import Caches
from grove.operator.keys import Key, ReplicaKey, SetKey, replica_of

Keys = Callable[[], Iterator[Key | None]]
"""Returns a new iterator over keys. None is a step that found no key to enqueue."""


class FanOut(Struct, frozen=True):
    """Many keys, to be enqueued in slices. An owner has one iteration in progress at a time."""

    owner: Hashable
    keys: Keys


class SlicedEnqueuer:
    """Enqueues the keys of any number of owners, in slices."""

    def __init__(self, enqueue: Callable[[Key], None]) -> None:
        self._enqueue = enqueue
        self._in_progress: dict[Hashable, Keys | None] = {}
        """Owners whose keys are being enqueued, with the keys to start with afterwards."""

    def start(self, owner: Hashable, keys: Keys) -> None:
        """Enqueue these keys. An owner has one iteration in progress at a time."""
        if owner in self._in_progress:
            self._in_progress[owner] = keys
        else:
            self._in_progress[owner] = None
            self._next_slice(owner, keys())

    def _next_slice(self, owner: Hashable, keys: Iterator[Key | None]) -> None:
        taken = 0
        try:
            for key in islice(keys, timing.FAN_OUT_SLICE):
                taken += 1
                if key is not None:
                    self._enqueue(key)
        except BaseException:
            self._in_progress.pop(owner, None)  # else the owner could never start again
            raise
        if taken < timing.FAN_OUT_SLICE:
            again = self._in_progress.pop(owner)
            if again is not None:
                asyncio.get_running_loop().call_soon(self.start, owner, again)
        else:
            asyncio.get_running_loop().call_soon(self._next_slice, owner, keys)


def all_replicas(caches: Caches, key: SetKey, workload: PodCliqueSet | None) -> FanOut:
    """All replicas of a set, to be enqueued in slices."""
    return FanOut(key, partial(replicas, caches, key, workload))


def replicas(caches: Caches, key: SetKey, workload: PodCliqueSet | None) -> Iterator[Key | None]:
    """The replicas that a set has or should have. For a set above the limit on pods no replica is created:
    the existing ones only."""
    held = workload is not None and caches.sizes.excess(workload) is not None
    count = 0 if workload is None or held else workload.spec.replicas
    yield from (ReplicaKey(key.namespace, key.name, index) for index in range(count))
    seen: set[int] = set()
    for found in chain.from_iterable(caches.objects_of_set(key)):
        replica_key = replica_of(found.metadata)
        if replica_key is None or replica_key.replica < count or replica_key.replica in seen:
            yield None
        else:
            seen.add(replica_key.replica)
            yield replica_key
