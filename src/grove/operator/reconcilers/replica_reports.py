"""Reports of replicas to their set: the summary and the errors of the latest pass over each replica. The pass
over the set aggregates them into its status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from grove import timing
from grove.api.error_codes import ErrorCode, Operation, describe
from grove.api.types.common import LastError
from grove.operator.engine.errors import ChildRef, PassErrors
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import ReplicaKey, SetKey, parent_of
from grove.plan.model import ReplicaReport, ReplicaSummary
from grove.plan.timestamps import rfc3339


class ReplicaReports:
    """Stores reports in the records of sets. `enqueue` is called with a set after a delay, so that the
    reports of several replicas are aggregated in one pass."""

    def __init__(self, states: KeyStates, enqueue: Callable[[SetKey, float], None]) -> None:
        self._states, self._enqueue = states, enqueue

    def of(self, key: SetKey) -> Mapping[int, ReplicaReport]:
        """The reports of one set, by replica index."""
        state = self._states.find(key)
        return state.reports if state is not None else {}

    def aggregate_later(self, key: SetKey) -> None:
        """Enqueue a set after a delay. The larger the set, the longer aggregation takes, and the longer is
        the delay."""
        pause = timing.AGGREGATION_DELAY + timing.AGGREGATION_DELAY_PER_REPLICA * len(self.of(key))
        self._enqueue(key, asyncio.get_running_loop().time() + pause)

    def record(
        self,
        key: ReplicaKey,
        generation: int,
        summary: ReplicaSummary | None,
        errors: PassErrors,
        remaining: frozenset[ChildRef | None],
    ) -> None:
        """Store the report of a pass over a replica, with the writes that are `remaining`, for a generation
        of its set. Errors of cliques and groups are in their own statuses, not in the report. Without a
        summary the replica is surplus, and has no report."""
        if summary is not None:
            self._store(key, ReplicaReport(0 if None in remaining else generation, summary, errors.of_set))
        elif self._states.of(parent_of(key)).reports.pop(key.replica, None) is not None:
            self.aggregate_later(parent_of(key))

    def record_errors(self, key: ReplicaKey, errors: tuple[LastError, ...]) -> None:
        """Store the errors of a pass that planned no summary: the one of the previous report stays."""
        known = self.of(parent_of(key)).get(key.replica)
        summary = known.summary if known is not None else ReplicaSummary()
        self._store(key, ReplicaReport(0, summary, errors))

    def record_plan_failure(self, key: ReplicaKey, error: Exception, now: float) -> None:
        """Store that the plan of a replica failed: users have no other way to learn of it. The summary is
        the one of the previous report."""
        known = self.of(parent_of(key)).get(key.replica)
        what = f"replica {key.replica} cannot be planned: correct the template, or see the operator's log"
        why = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        message = describe(Operation.SYNC, ErrorCode.PLAN_REPLICA, what, why)
        if known is not None and message in {known_error.description for known_error in known.errors}:
            return
        self.record_errors(key, (LastError(ErrorCode.PLAN_REPLICA, message, rfc3339(now)),))

    def _store(self, key: ReplicaKey, report: ReplicaReport) -> None:
        reports = self._states.of(parent_of(key)).reports
        if reports.get(key.replica) != report:
            reports[key.replica] = report
            self.aggregate_later(parent_of(key))
