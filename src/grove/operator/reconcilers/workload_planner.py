"""From a key to its plan: what is read of the caches for it, and where the plan is made."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from grove.api.types.common import LastError
from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.caches.registry import Caches
from grove.operator.engine.replica_reports import ReplicaReports
from grove.operator.engine.terminating_namespaces import TerminatingNamespaces
from grove.operator.keys import ReplicaKey, SetKey, WorkloadKey, parent_of
from grove.operator.metrics.workloads import plan_seconds, plan_writes
from grove.operator.observers.topology import TopologyLookup
from grove.operator.observers.workload import Observer
from grove.operator.reconcilers.fabric import FabricReconciler
from grove.operator.reconcilers.plan_thread import LARGE, Offload
from grove.operator.reconcilers.scale_in import ScaleInTracker
from grove.plan.deletion import plan_deletion
from grove.plan.desired.limits import pods_asked, too_many_pods
from grove.plan.model import Plan
from grove.plan.podcliqueset import plan_set
from grove.plan.replica import plan_replica, plan_terminating_namespace
from grove.plan.scale_in import plan_scale_in
from grove.plan.snapshot import Snapshot
from grove.plan.writes.collector import bounded, merge_writes

MOST_WRITES = 2000
"""Writes of one pass. What is left of a larger plan comes with the next: in between, others have their
turn."""


_AT_A_TIME = 64


class Parts(Struct, frozen=True):
    """What the planner reads."""

    caches: Caches
    observer: Observer
    reports: ReplicaReports
    endings: TerminatingNamespaces
    retirements: ScaleInTracker
    topologies: TopologyLookup
    domains: FabricReconciler
    errors: Callable[[SetKey], tuple[LastError, ...]]
    """Errors of a set itself, as of the latest pass over it."""


class Planner:
    """Makes plans, and remembers those that only wait to be told."""

    def __init__(self, parts: Parts, gather: Callable[[SetKey], None]) -> None:
        self._parts, self._caches, self._gather = parts, parts.caches, gather
        self._offload = Offload()
        self._untold: dict[WorkloadKey, tuple[Snapshot, Plan]] = {}
        """Plans with nothing to do but to tell, which can wait. While nothing changes, they stay right."""
        self._failed: dict[WorkloadKey, frozenset[str]] = {}
        """Writes of a plan that was cut which were not done: others go first."""

    async def plan(self, key: WorkloadKey, now: float) -> Plan | None:
        """What to do about a key; None if there is no such set. Raises Busy if it must be asked again
        later."""
        began = time.perf_counter()
        plan = await (self._of_replica(key, now) if isinstance(key, ReplicaKey) else self._of_set(key, now))
        if plan is not None:
            plan_seconds.observe(time.perf_counter() - began)
            plan_writes.observe(len(plan.intents))
            plan = self._cut(key, plan)
        return plan

    def told(self, key: WorkloadKey) -> None:
        """Nothing of the latest plan waits any more."""
        self._untold.pop(key, None)

    def note_failures(self, key: WorkloadKey, plan: Plan, failed: frozenset[str]) -> bool:
        """Which writes of a plan that was cut were not done. Returns whether the rest should be tried at
        once: most were."""
        if len(plan.intents) < MOST_WRITES or not failed:
            self._failed.pop(key, None)
            return False
        self._failed[key] = failed
        return 2 * len(failed) < len(plan.intents)

    def forget(self, key: WorkloadKey) -> None:
        """There is no such key any more."""
        self._untold.pop(key, None)
        self._failed.pop(key, None)

    def _cut(self, key: WorkloadKey, plan: Plan) -> Plan:
        if len(plan.intents) <= MOST_WRITES:
            return plan
        chosen = bounded(plan.intents, MOST_WRITES, self._failed.get(key, frozenset()))
        return replace(plan, intents=chosen, partial=True)

    async def _of_set(self, key: SetKey, now: float) -> Plan | None:
        workload = self._caches.sets.get(key.namespace, key.name)
        if workload is None:
            return None
        parts = self._parts
        if workload.metadata.deletion_timestamp is not None:
            owned_objects = parts.observer.owned_objects(key)
            large = len(owned_objects.pods) + len(owned_objects.cliques) > LARGE
            return await self._made(partial(plan_deletion, workload, owned_objects, now), large=large)
        large = max(len(parts.reports.of(key)), parts.retirements.count(key)) > LARGE
        if large:
            self._offload.check()
        leaving = await self._leaving(key)
        current = self._caches.sets.get(key.namespace, key.name)
        if current is None or current.metadata.deletion_timestamp is not None:
            return Plan(requeue_at=now)  # looking at those that go took a while
        return await self._made(self._prepared(current, key, leaving, now), large=large)

    async def _made(self, make: Callable[[], Plan], *, large: bool) -> Plan:
        return await self._offload.run(make) if large else make()

    async def _leaving(self, key: SetKey) -> list[Snapshot]:
        """Replicas that the set no longer has. Of many, a few are looked at at a time: views that differ by a
        moment are as good as any."""
        found: list[Snapshot] = []
        for number, snapshot in enumerate(self._parts.retirements.leaving(key), 1):
            if snapshot is not None:
                found.append(snapshot)
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
        return found

    def _prepared(
        self, workload: PodCliqueSet, key: SetKey, leaving: list[Snapshot], now: float
    ) -> Callable[[], Plan]:
        """All that is read for the plan of a set, and how to make it of that."""
        parts, in_vain = self._parts, self._parts.endings.includes(key)
        excess = self._caches.sizes.excess(workload)
        make = partial(
            plan_set,
            workload,
            dict(parts.reports.of(key)),
            now,
            None if in_vain else self._caches.access(key),
            parts.errors(key),
            parts.topologies.of(workload),
            None if in_vain else parts.observer.shared_claims.of_set(workload),
            parts.domains.domain_observations(workload),
            too_many_pods(excess.asked, excess.limit) if excess is not None else None,
        )
        return partial(_with_leaving, make, leaving, now)

    async def _of_replica(self, key: ReplicaKey, now: float) -> Plan | None:
        snapshot = self._parts.observer.replica(key)
        if snapshot is None:
            return None
        ending = snapshot.workload.metadata.deletion_timestamp is not None
        surplus = key.replica >= snapshot.workload.spec.replicas
        if (ending or surplus) and self._parts.retirements.record(key, snapshot):
            self._gather(parent_of(key))  # one plan for all that go
        if surplus and not ending:
            return Plan()
        large = self._is_large(snapshot)
        if self._parts.endings.includes(key):
            return await self._made(partial(plan_terminating_namespace, snapshot, now), large=large)
        known, plan = self._untold.get(key, (None, None))
        if plan is None or known != snapshot or (plan.requeue_at is not None and plan.requeue_at <= now):
            plan = await self._made(partial(plan_replica, snapshot, now), large=large)
            self._untold[key] = snapshot, plan
        return plan

    def _is_large(self, snapshot: Snapshot) -> bool:
        if len(snapshot.pods) > LARGE:
            return True
        if snapshot.held or self._caches.sizes.asked(snapshot.workload) <= LARGE:
            return False
        return pods_asked(snapshot.workload, snapshot.index, snapshot.groups, snapshot.cliques) > LARGE


def _with_leaving(make: Callable[[], Plan], leaving: list[Snapshot], now: float) -> Plan:
    plan, gone = make(), plan_scale_in(leaving, now) if leaving else Plan()
    moments = [moment for moment in (plan.requeue_at, gone.requeue_at) if moment is not None]
    return replace(
        plan, intents=merge_writes((plan.intents, gone.intents)), requeue_at=min(moments, default=None)
    )
