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
    """All gangs of a namespace, each with the same number of pods, and all pods of the cluster."""

    def __init__(self, namespace: str, size: int) -> None:
        self._namespace, self._size = namespace, size
        self.gangs: dict[str, GangRecord] = {}
        self._lines: list[tuple[str, str, str]] = []

    def saw(self, old: AnyObject | None, new: AnyObject | None) -> None:
        """Handle a watch event."""
        pod = new or old
        assert pod is not None
        gang = pod.labels.get(labels.GANG, "") if pod.metadata.namespace == self._namespace else ""
        self._lines.append((gang, _node(pod), _describe(pod, new is not None)))
        if gang:
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

    def explain(self) -> str:
        """All events of the gangs that were half bound, and of other pods on their nodes."""
        half = set(self.half_bound)
        nodes = {node for gang, node, _ in self._lines if gang in half and node}
        return "\n".join(line for gang, node, line in self._lines if gang in half or node in nodes)

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


def _node(pod: AnyObject) -> str:
    return str(pod.spec.get("nodeName") or pod.status.get("nominatedNodeName", ""))


def _describe(pod: AnyObject, exists: bool) -> str:
    conditions = pod.status.get("conditions") or ()
    reasons = [each.get("reason", "") for each in conditions if each["type"] == "PodScheduled"]
    facts = {
        "deleted": not exists,
        "terminating": pod.terminating,
        "gated": gated(pod),
        "bound": bool(pod.spec.get("nodeName")),
        reasons[0] if reasons else "": True,
    }
    limits = pod.spec["containers"][0].get("resources", {}).get("limits", {})
    shown = " ".join(name for name, holds in facts.items() if holds)
    version, where = pod.metadata.resource_version, _node(pod)
    return f"{time.monotonic():.3f} {version} {pod.name} {where} {shown} {limits} {pod.spec.get('priority')}"


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
    history = GangHistory(world.namespace, size)
    cache = Cache(PODS, AnyObject)
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
