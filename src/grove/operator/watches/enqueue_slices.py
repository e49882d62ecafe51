"""Wakes many keys a slice at a time: a set may have 50,000 replicas, and the event loop has others to serve.

The first slice is woken at once, so that small sets are as quick as ever. The rest follows slice by slice,
with a turn of the event loop in between. What is fed again while it is under way is begun once more
afterwards: keys that were woken before the latest change are woken after it, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from itertools import chain, islice

from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.caches.registry import Caches
from grove.operator.keys import Key, ReplicaKey, SetKey, replica_of

SLICE = 256
Keys = Callable[[], Iterator[Key | None]]
"""Begins to go through keys. None stands for a step that found nothing to wake."""


class SlicedEnqueuer:
    """Wakes the keys of any number of owners."""

    def __init__(self, enqueue: Callable[[Key], None]) -> None:
        self._enqueue = enqueue
        self._in_progress: dict[Hashable, Keys | None] = {}
        """Owners whose keys are being woken, and what to begin with afterwards."""

    def start(self, owner: Hashable, keys: Keys) -> None:
        """Wake these keys, for an owner that has one such list at a time."""
        if owner in self._in_progress:
            self._in_progress[owner] = keys
        else:
            self._in_progress[owner] = None
            self._next_slice(owner, keys())

    def _next_slice(self, owner: Hashable, keys: Iterator[Key | None]) -> None:
        taken = 0
        for key in islice(keys, SLICE):
            taken += 1
            if key is not None:
                self._enqueue(key)
        if taken < SLICE:
            again = self._in_progress.pop(owner)
            if again is not None:
                asyncio.get_running_loop().call_soon(self.start, owner, again)
        else:
            asyncio.get_running_loop().call_soon(self._next_slice, owner, keys)


def replicas(caches: Caches, key: SetKey, workload: PodCliqueSet | None) -> Iterator[Key | None]:
    """The replicas that a set has or should have. Of a set above the limit none is made: those that exist."""
    held = workload is not None and caches.sizes.excess(workload) is not None
    count = 0 if workload is None or held else workload.spec.replicas
    yield from (ReplicaKey(key.namespace, key.name, index) for index in range(count))
    seen: set[int] = set()
    for part in chain.from_iterable(caches.objects_of_set(key)):
        place = replica_of(part.metadata)
        if place is None or place.replica < count or place.replica in seen:
            yield None
        else:
            seen.add(place.replica)
            yield place
