"""Reconciles sets: one key for each. The set aggregates what its replicas report, and its plan deletes
surplus replicas and, when the set is deleted, everything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from grove import timing
from grove.api.intents import ObjectRef
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.resolved import ResolvedDomain
from grove.kube.executor.keyed_executor import WriteProblem
from grove.operator.caches.registry import BY_SET, Caches
from grove.operator.engine.key_state import KeyStates
from grove.operator.engine.reconciler import PassResult, Reconciler
from grove.operator.engine.terminating_namespaces import is_in_terminating_namespace
from grove.operator.keys import SetKey
from grove.operator.observers.set_validation import broken_rules
from grove.operator.observers.topology import TopologyLookup
from grove.operator.observers.workload import Observer
from grove.operator.reconcilers.replica_reports import ReplicaReports
from grove.operator.reconcilers.scale_in import ScaleInTracker
from grove.operator.reconcilers.slow_writes import SlowWrites
from grove.plan.deletion import plan_deletion
from grove.plan.desired.limits import too_many_pods
from grove.plan.model import Plan
from grove.plan.podcliqueset import plan_set
from grove.plan.scale_in import plan_scale_in
from grove.plan.snapshot import SetSnapshot, Snapshot
from grove.plan.timestamps import earliest
from grove.plan.writes.builders import reference
from grove.plan.writes.collector import merge_writes


class SetReconciler(Reconciler[SetKey, SetSnapshot]):
    """Plans a set as a whole."""

    def __init__(
        self,
        caches: Caches,
        states: KeyStates,
        observer: Observer,
        reports: ReplicaReports,
        scale_in: ScaleInTracker,
        topologies: TopologyLookup,
        slow_writes: SlowWrites,
        domains: Callable[[PodCliqueSet], tuple[ResolvedDomain, ...]],
        undecodable: Callable[[SetKey], tuple[LastError, ...]],
    ) -> None:
        self._caches, self._states, self._observer = caches, states, observer
        self._reports, self._scale_in, self._topologies = reports, scale_in, topologies
        self._slow_writes, self._domains, self._undecodable = slow_writes, domains, undecodable

    async def observe(self, key: SetKey) -> SetSnapshot | None:
        workload = self._caches.sets.get(key.namespace, key.name)
        if workload is None:
            return None
        if workload.metadata.deletion_timestamp is not None:
            return SetSnapshot(workload, owned_objects=self._observer.owned_objects(key))
        surplus = await self._surplus_replicas(key) if self._scale_in.count(key) else ()
        workload = self._caches.sets.get(key.namespace, key.name)
        if workload is None or workload.metadata.deletion_timestamp is not None:
            return await self.observe(key)  # changed while the surplus replicas were read
        return self._snapshot(key, workload, surplus)

    def plan(self, snapshot: SetSnapshot, now: float) -> Plan:
        if snapshot.owned_objects is not None:
            return plan_deletion(snapshot.workload, snapshot.owned_objects, now)
        plan = plan_set(snapshot, now)
        return _with_scale_in(plan, plan_scale_in(snapshot.surplus, now)) if snapshot.surplus else plan

    def about(self, snapshot: SetSnapshot) -> ObjectRef:
        return reference(snapshot.workload)

    def is_large(self, key: SetKey) -> bool:
        """Whether the set has many replicas; if it is deleted, many objects."""
        workload = self._caches.sets.get(key.namespace, key.name)
        if workload is None:
            return False
        if workload.metadata.deletion_timestamp is not None:
            pods, cliques = (
                len(cache.by_index(BY_SET, key)) for cache in (self._caches.pods, self._caches.cliques)
            )
            return pods + cliques > timing.LARGE_PLAN
        return max(len(self._reports.of(key)), self._scale_in.count(key)) > timing.LARGE_PLAN

    def record(self, key: SetKey, snapshot: SetSnapshot, plan: Plan, result: PassResult) -> None:  # noqa: ARG002
        """The status of a set has the errors of its latest pass: if they changed, it is planned again."""
        if result.changed:
            self._reports.aggregate_later(key)

    def record_write_problems(self, key: SetKey, problems: tuple[WriteProblem, ...]) -> None:
        self._slow_writes.record(key, problems)

    def _snapshot(self, key: SetKey, workload: PodCliqueSet, surplus: tuple[Snapshot, ...]) -> SetSnapshot:
        terminating = is_in_terminating_namespace(self._states, key, workload.metadata.uid)
        excess = self._caches.sizes.excess(workload)
        access = self._caches.access(key) if self._caches.start_order and not terminating else None
        return SetSnapshot(
            workload,
            dict(self._reports.of(key)),
            access=access,
            errors=(
                *self._states.of(key).errors.of_set,
                *self._slow_writes.errors(key),
                *self._undecodable(key),
            ),
            invalid=broken_rules(self._states, workload),
            topology=self._topologies.of(workload),
            fallback_topologies=self._topologies.of_fallbacks(workload),
            shared=None if terminating else self._observer.shared_claims.of_set(workload),
            domains=self._domains(workload),
            priority=self._observer.priority_classes.of(workload),
            too_many=too_many_pods(excess.requested, excess.limit) if excess is not None else None,
            surplus=surplus,
        )

    async def _surplus_replicas(self, key: SetKey) -> tuple[Snapshot, ...]:
        """The snapshots of replicas above `spec.replicas`. They are read in batches, with a turn of the event
        loop in between: the plan does not need them to be of the same instant."""
        found: list[Snapshot] = []
        for number, snapshot in enumerate(self._scale_in.surplus_replicas(key), 1):
            if snapshot is not None:
                found.append(snapshot)
            if number % timing.SNAPSHOT_BATCH == 0:
                await asyncio.sleep(0)
        return tuple(found)


def _with_scale_in(plan: Plan, scale_in: Plan) -> Plan:
    return replace(
        plan,
        intents=merge_writes((plan.intents, scale_in.intents)),
        events=(*plan.events, *scale_in.events),
        requeue_at=earliest(plan.requeue_at, scale_in.requeue_at),
    )
