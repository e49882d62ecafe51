"""Reconciles fabric domains: one key for each. What a pass finds is reported to the sets that require the
domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from grove.api.error_codes import ErrorCode
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import Scope
from grove.fabrics.resolved import ResolvedDomain
from grove.kube.executor.outcome import IntentState
from grove.operator.engine.key_state import KeyStates
from grove.operator.engine.reconciler import PassResult, Reconciler
from grove.operator.keys import DomainKey, Key, ReplicaKey, SetKey
from grove.operator.metrics.fabric import domain_failures
from grove.operator.observers.fabric import FabricLookup, latest_report
from grove.plan.fabric.model import DomainConsumer, DomainSnapshot
from grove.plan.fabric.planner import plan_domain
from grove.plan.model import Plan


class DomainReconciler(Reconciler[DomainKey, DomainSnapshot]):
    """Creates, updates and deletes domains."""

    error_code = ErrorCode.SYNC_COMPUTE_DOMAIN.value

    def __init__(self, lookup: FabricLookup, states: KeyStates, enqueue: Callable[[Key], None]) -> None:
        self._lookup, self._states, self._enqueue = lookup, states, enqueue

    async def observe(self, key: DomainKey) -> DomainSnapshot | None:
        snapshot = self._lookup.snapshot(key)
        return snapshot if snapshot is not None and (snapshot.found or snapshot.consumers) else None

    def plan(self, snapshot: DomainSnapshot, now: float) -> Plan:
        return plan_domain(snapshot, now)

    def record(self, key: DomainKey, snapshot: DomainSnapshot, plan: Plan, result: PassResult) -> None:  # noqa: ARG002
        """Count failures, and enqueue the sets and replicas whose statuses report the domain."""
        for each in result.outcome.results if not result.namespace_terminating else ():
            if each.state is IntentState.FAILED:
                domain_failures.labels(key.vendor, type(each.intent).__name__.lower()).inc()
        if result.changed:
            for consumer in snapshot.consumers:
                for reporting in _reporting_keys(consumer):
                    self._enqueue(reporting)

    def of_set(self, workload: PodCliqueSet) -> tuple[ResolvedDomain, ...]:
        """The domains of a set, with what the latest passes over them report."""
        return self._lookup.of_set(workload, partial(latest_report, self._states))


def _reporting_keys(consumer: DomainConsumer) -> Iterator[Key]:
    workload, membership = consumer.workload, consumer.membership
    meta = workload.metadata
    yield SetKey(meta.namespace, meta.name)
    shared = membership.requirement.scope is Scope.SHARED
    for replica in range(workload.spec.replicas) if shared else membership.replicas:
        yield ReplicaKey(meta.namespace, meta.name, replica)
