"""Reconciles replicas of sets: one key for each. What a pass finds is reported to the set."""

from __future__ import annotations

from collections.abc import Callable

from grove import timing
from grove.api.intents import ObjectRef
from grove.kube.executor.keyed_executor import WriteProblem
from grove.kube.executor.outcome import IntentState, Outcome
from grove.kube.workqueue.fair_queue import QueueLane
from grove.kube.workqueue.queue import ExpectedFailure
from grove.operator.caches.registry import BY_REPLICA, Caches
from grove.operator.engine.key_state import KeyStates
from grove.operator.engine.reconciler import PassResult, Reconciler
from grove.operator.keys import Key, PlacementKey, ReplicaKey, parent_of
from grove.operator.observers.placement import PlacementState
from grove.operator.observers.set_validation import broken_rules
from grove.operator.observers.workload import Observer
from grove.operator.reconcilers.replica_reports import ReplicaReports
from grove.operator.reconcilers.scale_in import ScaleInTracker
from grove.operator.reconcilers.slow_writes import SlowWrites
from grove.plan.desired.limits import pods_asked
from grove.plan.model import Plan
from grove.plan.replica import plan_replica
from grove.plan.scale_in import has_objects
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import reference


class ReplicaReconciler(Reconciler[ReplicaKey, Snapshot]):
    """Plans the objects of one replica."""

    def __init__(
        self,
        caches: Caches,
        states: KeyStates,
        observer: Observer,
        reports: ReplicaReports,
        scale_in: ScaleInTracker,
        placement: PlacementState | None,
        slow_writes: SlowWrites,
        enqueue: Callable[[Key], None],
    ) -> None:
        self._caches, self._states, self._observer, self._enqueue = caches, states, observer, enqueue
        self._reports, self._scale_in, self._placement = reports, scale_in, placement
        self._slow_writes = slow_writes

    async def observe(self, key: ReplicaKey) -> Snapshot | None:
        """The snapshot of a replica; None if its set does not exist, or if it is surplus and has no objects
        left. Many replicas may have been requested and never created: their set need not read them."""
        snapshot = self._observer.replica(key)
        if snapshot is None or (_is_surplus(snapshot) and not has_objects(snapshot)):
            return None
        return snapshot

    def plan(self, snapshot: Snapshot, now: float) -> Plan:
        """The plan of a replica; empty for a surplus one, which the plan of its set deletes."""
        return Plan() if _is_surplus(snapshot) else plan_replica(snapshot, now)

    def about(self, snapshot: Snapshot) -> ObjectRef:
        """The set: cliques and groups are named where they are meant."""
        return reference(snapshot.workload)

    def is_large(self, key: ReplicaKey) -> bool:
        """Whether the replica has many pods, or should have."""
        workload = self._caches.sets.get(key.namespace, key.set_name)
        if workload is None or workload.metadata.deletion_timestamp or key.replica >= workload.spec.replicas:
            return False
        sizes = self._caches.sizes
        if max(sizes.requested(workload), len(self._caches.pods)) <= timing.LARGE_PLAN:
            return False
        if sizes.requested(workload) > timing.LARGE_PLAN and sizes.excess(workload) is None:
            groups = {group.metadata.name: group for group in self._caches.groups.by_index(BY_REPLICA, key)}
            cliques = {
                clique.metadata.name: clique for clique in self._caches.cliques.by_index(BY_REPLICA, key)
            }
            if pods_asked(workload, key.replica, groups, cliques) > timing.LARGE_PLAN:
                return True
        return len(self._caches.pods.by_index(BY_REPLICA, key)) > timing.LARGE_PLAN

    def record(self, key: ReplicaKey, snapshot: Snapshot, plan: Plan, result: PassResult) -> None:
        """Report to the set, and request what the replica waits for."""
        workload = snapshot.workload
        deleted = workload.metadata.deletion_timestamp is not None or _is_surplus(snapshot)
        if deleted and self._scale_in.record(key, snapshot):
            self._reports.aggregate_later(parent_of(key))  # the plan of the set deletes all of them
        self._resolve_lost_pods(key, snapshot, result.outcome)
        if plan.report is not None or deleted:
            generation = workload.metadata.generation
            self._reports.record(key, generation, plan.report, result.errors, result.remaining)
        elif result.errors.of_set:  # lost pods could not be patched: the former summary stays
            self._reports.record_errors(key, result.errors.of_set)
        if self._placement is not None and self._placement.update(
            key, plan.placement_demands, complete=plan.demands_complete
        ):
            self._enqueue(PlacementKey())

    def plan_failure(self, key: ReplicaKey, error: Exception, now: float) -> Exception:
        """A set that breaks the admission rules says so itself; an unexpected failure is reported with the
        replica."""
        workload = self._caches.sets.get(key.namespace, key.set_name)
        if workload is not None and (broken := broken_rules(self._states, workload)):
            return ExpectedFailure(broken)
        self._reports.record_plan_failure(key, error, now)
        return error

    def record_write_problems(self, key: ReplicaKey, problems: tuple[WriteProblem, ...]) -> None:
        self._slow_writes.record(key, problems)

    def dropped(self, key: ReplicaKey) -> None:
        if self._placement is not None and self._placement.update(key, ()):
            self._enqueue(PlacementKey())
        if self._scale_in.record_gone(key):
            self._reports.aggregate_later(parent_of(key))

    def lane(self, key: ReplicaKey) -> QueueLane:
        """Sets take turns, however many replicas they have, and replicas with a report go before new ones. So
        do those whose gangs are decided on: their pods need not wait until all others are planned."""
        parent = parent_of(key)
        started = key.replica in self._reports.of(parent)
        decided = self._placement is not None and self._placement.is_decided(key)
        return QueueLane(("replicas", parent), started or decided)

    def _resolve_lost_pods(self, key: ReplicaKey, snapshot: Snapshot, outcome: Outcome) -> None:
        """Lost pods that were patched are in the cache again; those that were not found are deleted."""
        if not snapshot.lost_pods:
            return
        state = self._states.of(key)
        gone = {result.name for result in outcome.results if result.state is IntentState.CONFLICT}
        gone &= state.lost_pods.keys() if state.lost_pods else set()
        state.lost_pods = {name: pod for name, pod in (state.lost_pods or {}).items() if name not in gone}
        state.deleted_pods = (state.deleted_pods or set()) | gone
        if not outcome.failed:
            self._enqueue(key)  # now that they are known, the replica is planned at once


def _is_surplus(snapshot: Snapshot) -> bool:
    """Whether the replica is above `spec.replicas` of a set that is not being deleted."""
    workload = snapshot.workload
    return workload.metadata.deletion_timestamp is None and snapshot.index >= workload.spec.replicas
