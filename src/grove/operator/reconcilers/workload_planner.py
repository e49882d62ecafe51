"""Computes the plan of a set or a replica: reads its inputs from the caches, and calls the planner in the
event loop or, for a large plan, in a thread. The controller executes the plan."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
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
from grove.operator.reconcilers.plan_thread import PlanThread
from grove.operator.reconcilers.scale_in import ScaleInTracker
from grove.plan.deletion import plan_deletion
from grove.plan.desired.limits import pods_asked, too_many_pods
from grove.plan.model import Plan
from grove.plan.podcliqueset import plan_set
from grove.plan.replica import plan_replica, plan_terminating_namespace
from grove.plan.scale_in import plan_scale_in
from grove.plan.snapshot import Snapshot
from grove.plan.writes.collector import bounded, merge_writes


class PlannerInputs(Struct, frozen=True):
    """What the planner reads."""

    caches: Caches
    observer: Observer
    reports: ReplicaReports
    terminating_namespaces: TerminatingNamespaces
    scale_in: ScaleInTracker
    topologies: TopologyLookup
    domains: FabricReconciler
    errors: Callable[[SetKey], tuple[LastError, ...]]
    """Errors of a set itself, as of the latest pass over it."""


class Planner:
    """Computes plans, and caches those whose statuses are not written yet."""

    def __init__(self, inputs: PlannerInputs, aggregate_later: Callable[[SetKey], None]) -> None:
        self._inputs, self._caches, self._aggregate_later = inputs, inputs.caches, aggregate_later
        self._plan_thread = PlanThread()
        self._cached_plans: dict[WorkloadKey, tuple[Snapshot, Plan]] = {}
        """Plans whose statuses wait to be written. They are valid while the snapshot is equal."""
        self._failed: dict[WorkloadKey, frozenset[str]] = {}
        """The ids of failed writes of a plan above `WRITES_PER_PASS`: others go first in the next pass."""

    async def plan(self, key: WorkloadKey, now: float) -> Plan | None:
        """The plan of a key; None if the set does not exist. Raises PlanThreadBusy: requeue the key."""
        began = time.perf_counter()
        plan = await (self._of_replica(key, now) if isinstance(key, ReplicaKey) else self._of_set(key, now))
        if plan is not None:
            plan_seconds.observe(time.perf_counter() - began)
            plan_writes.observe(len(plan.intents))
            plan = self._limit_writes(key, plan)
        return plan

    def drop_cached_plan(self, key: WorkloadKey) -> None:
        """The latest plan of the key is executed or its statuses are written: do not use it again."""
        self._cached_plans.pop(key, None)

    def record_failures(self, key: WorkloadKey, plan: Plan, failed: frozenset[str]) -> bool:
        """Store the failed writes of a plan above `WRITES_PER_PASS`. Returns whether the rest is planned at
        once, which is so if most writes succeeded."""
        if len(plan.intents) < timing.WRITES_PER_PASS or not failed:
            self._failed.pop(key, None)
            return False
        self._failed[key] = failed
        return 2 * len(failed) < len(plan.intents)

    def forget(self, key: WorkloadKey) -> None:
        """Drop the state of a key that no longer exists."""
        self._cached_plans.pop(key, None)
        self._failed.pop(key, None)

    def _limit_writes(self, key: WorkloadKey, plan: Plan) -> Plan:
        if len(plan.intents) <= timing.WRITES_PER_PASS:
            return plan
        chosen = bounded(plan.intents, timing.WRITES_PER_PASS, self._failed.get(key, frozenset()))
        return replace(plan, intents=chosen, partial=True)

    async def _of_set(self, key: SetKey, now: float) -> Plan | None:
        workload = self._caches.sets.get(key.namespace, key.name)
        if workload is None:
            return None
        inputs = self._inputs
        if workload.metadata.deletion_timestamp is not None:
            owned_objects = inputs.observer.owned_objects(key)
            large = len(owned_objects.pods) + len(owned_objects.cliques) > timing.LARGE_PLAN
            return await self._compute(partial(plan_deletion, workload, owned_objects, now), large=large)
        large = max(len(inputs.reports.of(key)), inputs.scale_in.count(key)) > timing.LARGE_PLAN
        if not large:
            return await self._with_surplus(key, now, large=False)
        self._plan_thread.reserve()
        try:
            return await self._with_surplus(key, now, large=True)
        finally:
            self._plan_thread.release()

    async def _with_surplus(self, key: SetKey, now: float, *, large: bool) -> Plan:
        surplus = await self._surplus_replicas(key)
        current = self._caches.sets.get(key.namespace, key.name)
        if current is None or current.metadata.deletion_timestamp is not None:
            return Plan(requeue_at=now)  # changed while the surplus replicas were read
        compute = self._set_plan_function(current, key, surplus, now)
        return await self._plan_thread.run(compute, reserved=True) if large else compute()

    async def _compute(self, compute: Callable[[], Plan], *, large: bool) -> Plan:
        return await self._plan_thread.run(compute) if large else compute()

    async def _surplus_replicas(self, key: SetKey) -> list[Snapshot]:
        """The snapshots of replicas above `spec.replicas`. They are read in batches, with a turn of the event
        loop in between: the plan does not need them to be of the same instant."""
        found: list[Snapshot] = []
        for number, snapshot in enumerate(self._inputs.scale_in.surplus_replicas(key), 1):
            if snapshot is not None:
                found.append(snapshot)
            if number % timing.SNAPSHOT_BATCH == 0:
                await asyncio.sleep(0)
        return found

    def _set_plan_function(
        self, workload: PodCliqueSet, key: SetKey, surplus: list[Snapshot], now: float
    ) -> Callable[[], Plan]:
        """Read the inputs for the plan of a set. Returns a function that computes it without the caches."""
        inputs, namespace_terminating = self._inputs, self._inputs.terminating_namespaces.includes(key)
        excess = self._caches.sizes.excess(workload)
        compute = partial(
            plan_set,
            workload,
            dict(inputs.reports.of(key)),
            now,
            None if namespace_terminating else self._caches.access(key),
            inputs.errors(key),
            inputs.topologies.of(workload),
            None if namespace_terminating else inputs.observer.shared_claims.of_set(workload),
            inputs.domains.domain_observations(workload),
            too_many_pods(excess.requested, excess.limit) if excess is not None else None,
        )
        return partial(_with_scale_in, compute, surplus, now)

    async def _of_replica(self, key: ReplicaKey, now: float) -> Plan | None:
        snapshot = self._inputs.observer.replica(key)
        if snapshot is None:
            return None
        deleting = snapshot.workload.metadata.deletion_timestamp is not None
        surplus = key.replica >= snapshot.workload.spec.replicas
        if (deleting or surplus) and self._inputs.scale_in.record(key, snapshot):
            self._aggregate_later(parent_of(key))  # the plan of the set deletes all of them
        if surplus and not deleting:
            return Plan()
        large = self._is_large(snapshot)
        if self._inputs.terminating_namespaces.includes(key):
            return await self._compute(partial(plan_terminating_namespace, snapshot, now), large=large)
        known, plan = self._cached_plans.get(key, (None, None))
        if plan is None or known != snapshot or (plan.requeue_at is not None and plan.requeue_at <= now):
            plan = await self._compute(partial(plan_replica, snapshot, now), large=large)
            self._cached_plans[key] = snapshot, plan
        return plan

    def _is_large(self, snapshot: Snapshot) -> bool:
        if len(snapshot.pods) > timing.LARGE_PLAN:
            return True
        if snapshot.held or self._caches.sizes.requested(snapshot.workload) <= timing.LARGE_PLAN:
            return False
        return (
            pods_asked(snapshot.workload, snapshot.index, snapshot.groups, snapshot.cliques)
            > timing.LARGE_PLAN
        )


def _with_scale_in(compute: Callable[[], Plan], surplus: list[Snapshot], now: float) -> Plan:
    plan, scale_in = compute(), plan_scale_in(surplus, now) if surplus else Plan()
    times = [at for at in (plan.requeue_at, scale_in.requeue_at) if at is not None]
    return replace(
        plan, intents=merge_writes((plan.intents, scale_in.intents)), requeue_at=min(times, default=None)
    )
