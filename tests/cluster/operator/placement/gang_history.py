"""Judges from one watch of pods, which has the order of the API server's writes, whether gangs were ever
bound in part.

Pods are bound one after another, so that each gang is incomplete for some milliseconds. Two things are wrong:
a gang that stays incomplete, and a gang with a bound pod for whose other pods the scheduler finds no node and
preempts none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from grove.api.naming import labels
from grove.kube.cache.cache import Cache
from grove.kube.cache.reflector import Reflector
from grove.kube.client.resource import PODS
from tests.cluster.operator.support.objects import AnyObject, gated
from tests.cluster.operator.support.world import PATIENCE, World


class GangRecord(Struct):
    """One gang, from its first pod on."""

    unbound: set[str] = set()
    bound: set[str] = set()
    unschedulable: set[str] = set()
    whole: bool = False
    """Whether all pods had nodes at some time: later losses are not those of its start."""
    incomplete_since: float | None = None
    longest_incomplete: float = 0.0
    was_stuck: bool = False
    """Whether it was ever half bound: with a bound pod, and one that the scheduler found no node for."""

    def saw(self, pod: AnyObject, exists: bool, size: int, now: float) -> None:
        """Count one version of one pod."""
        for names in (self.unbound, self.bound, self.unschedulable):
            names.discard(pod.name)
        if exists and not pod.terminating:
            (self.bound if pod.spec.get("nodeName") else self.unbound).add(pod.name)
            if _unschedulable(pod):
                self.unschedulable.add(pod.name)
        self.whole |= len(self.bound) == size
        if not self.whole and self.bound:
            self.was_stuck |= bool(self.unschedulable)
            self.incomplete_since = self.incomplete_since or now
        elif self.incomplete_since is not None:
            self.longest_incomplete = max(self.longest_incomplete, now - self.incomplete_since)
            self.incomplete_since = None


class GangHistory:
    """All gangs of a namespace, each with the same number of pods."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.gangs: dict[str, GangRecord] = {}

    def saw(self, old: AnyObject | None, new: AnyObject | None) -> None:
        """Handle a watch event."""
        pod = new or old
        assert pod is not None
        if gang := pod.labels.get(labels.GANG):
            record = self.gangs.setdefault(gang, GangRecord())
            record.saw(pod, new is not None, self._size, time.monotonic())

    @property
    def whole(self) -> list[str]:
        """The gangs that were bound as a whole at some time."""
        return [name for name, record in self.gangs.items() if record.whole]

    @property
    def half_bound(self) -> list[str]:
        """The gangs that were ever half bound."""
        return [name for name, record in self.gangs.items() if record.was_stuck]

    def longest_incomplete(self) -> float:
        """The longest time for which a gang had some of its pods bound, in seconds."""
        now = time.monotonic()
        return max(
            (
                max(each.longest_incomplete, now - each.incomplete_since if each.incomplete_since else 0.0)
                for each in self.gangs.values()
            ),
            default=0.0,
        )


def _unschedulable(pod: AnyObject) -> bool:
    if gated(pod) or pod.spec.get("nodeName") or pod.status.get("nominatedNodeName"):
        return False
    conditions = pod.status.get("conditions") or ()
    return any(
        each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions
    )


@asynccontextmanager
async def recording_gangs(world: World, size: int) -> AsyncIterator[GangHistory]:
    """The history of the gangs of a namespace during the block."""
    history = GangHistory(size)
    cache = Cache(PODS, AnyObject, namespace=world.namespace)
    cache.subscribe(history.saw)
    cache.subscribe(lambda _old, _new: world.touch())
    task = asyncio.create_task(Reflector(world.client, cache).run())
    try:
        async with asyncio.timeout(PATIENCE):
            await cache.synced.wait()
        yield history
    finally:
        task.cancel()
        await asyncio.wait({task})
