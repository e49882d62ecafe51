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

from grove.api import times
from grove.api.conditions import ConditionType
from grove.api.gangs import PodGang
from grove.operator import domain_census
from grove.operator.caches import Caches
from grove.plan.facts import is_true
from grove.plan.pods import gated

_WAITING = (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)

gang_scheduled_seconds = Histogram(
    "grove_gang_scheduled_seconds", "From a gang's creation to its first being scheduled", buckets=_WAITING
)
gang_ready_seconds = Histogram(
    "grove_gang_ready_seconds", "From a gang's creation to its first being ready", buckets=_WAITING
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


class Milestone:
    """How long gangs take to a condition that they reach for the first time."""

    def __init__(self, condition: str, reached: Histogram, clock: Callable[[], float] = time.time) -> None:
        self._condition, self._reached, self._clock = condition, reached, clock
        self._begun: dict[str, float] = {}

    def find(self, gang: PodGang) -> None:
        """A gang that was there before us: its creation is known to the second."""
        created = gang.metadata.creation_timestamp
        if created and not is_true(gang.status.conditions, self._condition):
            self._begun[gang.metadata.uid] = times.parse(created).timestamp()

    def follow(self, old: PodGang | None, new: PodGang | None) -> None:
        """A gang that came, changed or went."""
        if new is None:
            if old is not None:
                self._begun.pop(old.metadata.uid, None)
        elif is_true(new.status.conditions, self._condition):
            begun = self._begun.pop(new.metadata.uid, None)
            if begun is not None:
                self._reached.observe(max(0.0, self._clock() - begun))
        elif old is None:
            self._begun[new.metadata.uid] = self._clock()


class Census:
    """Counts on these caches for as long as it is entered."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        caches = self._caches
        for milestone in (
            Milestone(ConditionType.SCHEDULED, gang_scheduled_seconds),
            Milestone(ConditionType.READY, gang_ready_seconds),
        ):
            for gang in caches.gangs:
                milestone.find(gang)
            self._undo.callback(caches.gangs.subscribe(milestone.follow))
        workloads.set_function(lambda: len(caches.sets))
        gated_pods.set_function(lambda: sum(map(gated, caches.pods)))
        self._undo.enter_context(domain_census.count(caches))
        leader.set(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()
        for gauge in (workloads, gated_pods):
            gauge.set_function(lambda: 0)
        leader.set(0)
