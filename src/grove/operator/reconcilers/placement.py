"""Reconciles placement: a single key, because gangs compete for the same nodes."""

from __future__ import annotations

from collections.abc import Callable

from grove.operator.engine.reconciler import PassResult, Reconciler
from grove.operator.keys import Key, PlacementKey
from grove.operator.observers.placement import PlacementSnapshot, PlacementState
from grove.plan.model import Plan


class PlacementReconciler(Reconciler[PlacementKey, PlacementSnapshot]):
    """Assigns the gangs that wait to nodes, in the order of their requests."""

    def __init__(self, placement: PlacementState, enqueue: Callable[[Key], None]) -> None:
        self._placement, self._enqueue = placement, enqueue

    async def observe(self, key: PlacementKey) -> PlacementSnapshot | None:  # noqa: ARG002
        return self._placement.snapshot()

    def plan(self, snapshot: PlacementSnapshot, now: float) -> Plan:  # noqa: ARG002
        return Plan(report=snapshot.assignments())

    def record(
        self,
        key: PlacementKey,  # noqa: ARG002
        snapshot: PlacementSnapshot,  # noqa: ARG002
        plan: Plan,
        result: PassResult,  # noqa: ARG002
    ) -> None:
        """Store the assignments, and enqueue the replicas whose plans apply them."""
        for replica in self._placement.record(plan.report):
            self._enqueue(replica)
