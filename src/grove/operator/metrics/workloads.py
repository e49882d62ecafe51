"""Metrics of workloads: gangs, pods, plans and leadership.

Gauges are computed when they are scraped and cost nothing in between. The names are part of the interface:
see docs/operator.md. Only the leader publishes values, so that the sum over all operator replicas is right.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from prometheus_client import Gauge, Histogram

from grove import timing
from grove.api.conditions import ConditionType
from grove.api.formats import timestamps
from grove.api.types.podgang import PodGang
from grove.operator.caches.registry import Caches
from grove.operator.metrics import fabric, placement
from grove.plan.conditions import is_true
from grove.plan.members.pod_state import gated

gang_scheduled_seconds = Histogram(
    "grove_gang_scheduled_seconds",
    "Time from the creation of a gang until it is scheduled for the first time",
    buckets=timing.STARTUP_BUCKETS,
)
gang_ready_seconds = Histogram(
    "grove_gang_ready_seconds",
    "Time from the creation of a gang until it is ready for the first time",
    buckets=timing.STARTUP_BUCKETS,
)
plan_seconds = Histogram(
    "grove_plan_seconds",
    "Time to compute one plan, without executing it",
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5),
)
plan_writes = Histogram(
    "grove_plan_writes",
    "Writes in one plan, without status writes; most plans have none",
    buckets=(0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
)
gated_pods = Gauge("grove_gated_pods", "Pods with the scheduling gate of Grove")
workloads = Gauge("grove_workloads", "PodCliqueSets")
leader = Gauge("grove_leader", "1 on the operator replica that is the leader, 0 on the others")


class GangConditionTimer:
    """Measures how long gangs take until a condition is true for the first time."""

    def __init__(self, condition: str, histogram: Histogram, clock: Callable[[], float] = time.time) -> None:
        self._condition, self._histogram, self._clock = condition, histogram, clock
        self._started_at: dict[str, float] = {}

    def on_existing(self, gang: PodGang) -> None:
        """A gang that exists at start: its creation time is known to the second."""
        created = gang.metadata.creation_timestamp
        if created and not is_true(gang.status.conditions, self._condition):
            self._started_at[gang.metadata.uid] = timestamps.parse(created).timestamp()

    def on_gang(self, old: PodGang | None, new: PodGang | None) -> None:
        """A gang was added, updated or deleted."""
        if new is None:
            if old is not None:
                self._started_at.pop(old.metadata.uid, None)
        elif is_true(new.status.conditions, self._condition):
            started_at = self._started_at.pop(new.metadata.uid, None)
            if started_at is not None:
                self._histogram.observe(max(0.0, self._clock() - started_at))
        elif old is None:
            self._started_at[new.metadata.uid] = self._clock()


class LeaderMetrics:
    """Publishes metrics from these caches while it is entered."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        caches = self._caches
        for timer in (
            GangConditionTimer(ConditionType.SCHEDULED, gang_scheduled_seconds),
            GangConditionTimer(ConditionType.READY, gang_ready_seconds),
        ):
            for gang in caches.gangs:
                timer.on_existing(gang)
            self._undo.callback(caches.gangs.subscribe(timer.on_gang))
        workloads.set_function(lambda: len(caches.sets))
        gated_pods.set_function(lambda: sum(map(gated, caches.pods)))
        self._undo.enter_context(fabric.track(caches))
        leader.set(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()
        for gauge in (workloads, gated_pods):
            gauge.set_function(lambda: 0)
        placement.free_slots.clear()
        leader.set(0)
