"""Reconciles placement: a single key, because gangs compete for the same nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from grove.kube.metrics import work_unexpected_errors_total
from grove.logger import get_logger
from grove.operator.engine.reconciler import PassResult, Reconciler
from grove.operator.keys import Key, PlacementKey
from grove.operator.metrics.placement import count_round, round_seconds
from grove.operator.observers.placement import PlacementState
from grove.plan.model import Plan
from grove.plan.placement.assignment import GangName
from grove.plan.placement.rounds.round import run_round
from grove.plan.placement.state import ClusterChanges, RoundResult

log = get_logger("grove.operator")


class PlacementReconciler(Reconciler[PlacementKey, ClusterChanges]):
    """Decides on gangs. The plans of their replicas write what follows: this key writes nothing."""

    def __init__(self, placement: PlacementState, enqueue: Callable[[Key], None]) -> None:
        self._placement, self._enqueue = placement, enqueue
        self._reported: set[GangName] = set()
        """The gangs whose decision failed, and was logged."""

    async def observe(self, key: PlacementKey) -> ClusterChanges | None:  # noqa: ARG002
        """What has changed. If the cluster cannot be listed, replicas report why, and if a right is missing,
        gangs without required levels do not wait."""
        if not self._placement.listed:
            for replica in self._placement.newly_delayed():
                self._enqueue(replica)
        return self._placement.changes()

    def is_large(self, key: PlacementKey) -> bool:  # noqa: ARG002
        """Whether many nodes or gangs are read: a search among thousands of nodes takes long."""
        return self._placement.is_large

    def plan(self, snapshot: ClusterChanges, now: float) -> Plan:
        """The only reader of the capacity: passes over one key never overlap."""
        if snapshot.blocked_until is not None:
            return Plan(report=RoundResult({}), requeue_at=snapshot.blocked_until)
        with round_seconds.time():
            result = run_round(self._placement.capacity, snapshot, now)
        return Plan(report=result, requeue_at=result.next_at)

    def plan_failure(self, key: PlacementKey, error: Exception, now: float) -> Exception:  # noqa: ARG002
        """What the round was given is lost: the next one reads everything."""
        self._placement.reset()
        return error

    def record(
        self,
        key: PlacementKey,  # noqa: ARG002
        snapshot: ClusterChanges,
        plan: Plan,
        result: PassResult,  # noqa: ARG002
    ) -> None:
        """Store the decisions, and enqueue the replicas whose plans apply them."""
        self._report_unexpected(plan.report.unexpected)
        count_round((gang.state for gang in snapshot.gangs), plan.report.changed)
        for replica in self._placement.record(plan.report):
            self._enqueue(replica)

    def _report_unexpected(self, errors: Mapping[GangName, Exception]) -> None:
        """Count errors that are bugs, and log each gang once: it is decided on again and again."""
        for gang, bug in errors.items():
            work_unexpected_errors_total.labels("operator").inc()
            if gang not in self._reported:
                self._reported.add(gang)
                log.error(
                    "decision on a gang failed with an unexpected error",
                    key="/".join(gang),
                    action="let it wait, and decide on it again",
                    reason=str(bug),
                    exc_info=bug,
                )
