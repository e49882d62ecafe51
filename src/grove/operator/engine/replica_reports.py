"""Reports of replicas to their set: the summary and the errors of the latest pass over each replica. The pass
over the set aggregates them into its status."""

from __future__ import annotations

from collections.abc import Mapping

from grove.api.error_codes import ErrorCode, Operation, describe
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.workqueue.fair_queue import QueueLane
from grove.operator.engine.errors import ChildRef, PassErrors
from grove.operator.keys import Key, ReplicaKey, SetKey, parent_of
from grove.plan.model import Plan, ReplicaSummary
from grove.plan.podcliqueset import ReplicaReport
from grove.plan.timestamps import rfc3339


class ReplicaReports:
    """Keeps the latest report of every replica, and the latest errors of every set."""

    def __init__(self) -> None:
        self._reports: dict[SetKey, dict[int, ReplicaReport]] = {}
        self._of_sets: dict[SetKey, tuple[LastError, ...]] = {}

    def of(self, key: SetKey) -> Mapping[int, ReplicaReport]:
        """The reports of one set, by replica index."""
        return self._reports.get(key, {})

    def lane(self, key: Key) -> QueueLane:
        """The lane of a key in the work queue: sets take turns, however many replicas they have, and replicas
        with a report go before new ones."""
        if not isinstance(key, ReplicaKey):
            return QueueLane(key)
        parent = parent_of(key)
        return QueueLane(("replicas", parent), started=key.replica in self.of(parent))

    def of_set(self, key: SetKey) -> tuple[LastError, ...]:
        """The errors of the latest pass over the set itself."""
        return self._of_sets.get(key, ())

    def record_set(self, key: SetKey, errors: PassErrors) -> bool:
        """Store the errors of a pass over the set itself. Returns whether they changed."""
        changed = errors.differ_from(self.of_set(key))
        self._of_sets[key] = errors.of_set
        return changed

    def record(
        self,
        key: ReplicaKey,
        workload: PodCliqueSet | None,
        plan: Plan,
        errors: PassErrors,
        remaining: frozenset[ChildRef | None],
    ) -> bool:
        """Store the report of a pass over a replica with the writes that are `remaining`. Returns whether the
        report changed. Errors of cliques and groups are in their own statuses, not in the report."""
        if plan.report is None or workload is None:
            return self._reports.get(parent_of(key), {}).pop(key.replica, None) is not None
        generation = 0 if None in remaining else workload.metadata.generation
        return self._store(key, ReplicaReport(generation, plan.report, errors.of_set))

    def record_plan_failure(self, key: ReplicaKey, error: Exception, now: float) -> bool:
        """Store that the plan of a replica failed: users have no other way to learn of it. Returns whether
        the report changed; its summary is the one of the previous report."""
        known = self.of(parent_of(key)).get(key.replica)
        what = f"replica {key.replica} cannot be planned: correct the template, or see the operator's log"
        why = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        message = describe(Operation.SYNC, ErrorCode.PLAN_REPLICA, what, why)
        if known is not None and message in {known_error.description for known_error in known.errors}:
            return False
        summary = known.summary if known is not None else ReplicaSummary()
        return self._store(
            key, ReplicaReport(0, summary, (LastError(ErrorCode.PLAN_REPLICA, message, rfc3339(now)),))
        )

    def forget(self, key: SetKey) -> None:
        """Drop the reports of a set that no longer exists."""
        self._reports.pop(key, None)
        self._of_sets.pop(key, None)

    def _store(self, key: ReplicaKey, report: ReplicaReport) -> bool:
        reports = self._reports.setdefault(parent_of(key), {})
        changed = reports.get(key.replica) != report
        reports[key.replica] = report
        return changed
