"""What the latest pass over each replica found: the set adds it up."""

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
    """Remembers the report of every replica."""

    def __init__(self) -> None:
        self._reports: dict[SetKey, dict[int, ReplicaReport]] = {}
        self._of_sets: dict[SetKey, tuple[LastError, ...]] = {}

    def of(self, key: SetKey) -> Mapping[int, ReplicaReport]:
        """Those of one set, by replica."""
        return self._reports.get(key, {})

    def place(self, key: Key) -> QueueLane:
        """Sets take turns, however many replicas they have; replicas that were begun go before new ones."""
        if not isinstance(key, ReplicaKey):
            return QueueLane(key)
        parent = parent_of(key)
        return QueueLane(("replicas", parent), started=key.replica in self.of(parent))

    def of_set(self, key: SetKey) -> tuple[LastError, ...]:
        """The errors of the latest pass over the set itself."""
        return self._of_sets.get(key, ())

    def note_set(self, key: SetKey, errors: PassErrors) -> bool:
        """The errors of a pass over the set itself. Returns whether they are others than before."""
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
        """What a plan found, with what is `remaining` of it to do. Returns whether that is news for the set. What
        only cliques and groups lack is theirs to tell."""
        if plan.summary is None or workload is None:
            return self._reports.get(parent_of(key), {}).pop(key.replica, None) is not None
        generation = 0 if None in remaining else workload.metadata.generation
        return self._store(key, ReplicaReport(generation, plan.summary, errors.of_set))

    def record_plan_failure(self, key: ReplicaKey, error: Exception, now: float) -> bool:
        """That no plan can be made for a replica: its user has no other way to learn of it. Returns whether
        that is news for the set; how the replica stands is what was known before."""
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
        """There is no such set any more."""
        self._reports.pop(key, None)
        self._of_sets.pop(key, None)

    def _store(self, key: ReplicaKey, report: ReplicaReport) -> bool:
        reports = self._reports.setdefault(parent_of(key), {})
        changed = reports.get(key.replica) != report
        reports[key.replica] = report
        return changed
