"""What the operator counts about its work, in the terms of whoever runs workloads.

What can be asked for when scraped costs nothing in between. Names are part of the product: see
docs/operator.md. Only the leader counts, so that the sum over all replicas is the truth.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from prometheus_client import Gauge, Histogram

from grove.api.conditions import ConditionType
from grove.api.formats import timestamps
from grove.api.types.podgang import PodGang
from grove.operator.caches.registry import Caches
from grove.operator.metrics import fabric
from grove.plan.members.pod_state import gated
from grove.plan.status.conditions import is_true

_BUCKETS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)

gang_scheduled_seconds = Histogram(
    "grove_gang_scheduled_seconds", "From a gang's creation to its first being scheduled", buckets=_BUCKETS
)
gang_ready_seconds = Histogram(
    "grove_gang_ready_seconds", "From a gang's creation to its first being ready", buckets=_BUCKETS
)
plan_seconds = Histogram(
    "grove_plan_seconds",
    "Time to make one plan, without carrying it out",
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5),
)
plan_writes = Histogram(
    "grove_plan_writes",
    "Writes that one plan asks for, statuses aside; most plans find nothing to do",
    buckets=(0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
)
gated_pods = Gauge("grove_gated_pods", "Pods that wait behind our scheduling gate")
workloads = Gauge("grove_workloads", "PodCliqueSets")
leader = Gauge("grove_leader", "1 on the replica that acts, 0 on those that follow")


class GangConditionTimer:
    """How long gangs take to a condition that they reach for the first time."""

    def __init__(self, condition: str, histogram: Histogram, clock: Callable[[], float] = time.time) -> None:
        self._condition, self._histogram, self._clock = condition, histogram, clock
        self._started_at: dict[str, float] = {}

    def on_existing(self, gang: PodGang) -> None:
        """A gang that was there before us: its creation is known to the second."""
        created = gang.metadata.creation_timestamp
        if created and not is_true(gang.status.conditions, self._condition):
            self._started_at[gang.metadata.uid] = timestamps.parse(created).timestamp()

    def on_gang(self, old: PodGang | None, new: PodGang | None) -> None:
        """A gang that came, changed or went."""
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
    """Counts on these caches for as long as it is entered."""

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
        leader.set(0)
