"""Which gangs the solver finds no place for, why, and what would help: rounds of placement as the operator
runs them, on a cluster in which nothing else moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from grove import timing
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dry_run.operator import DecidedGang, DryOperator
from grove.explanation.domains import closest_domain, domain_rows, short_resource
from grove.explanation.findings import waiting_reasons
from grove.explanation.model import GangExplanation, ObjectRef
from grove.explanation.subtree import POD
from grove.explanation.what_if import UsedBy, holders, remedies
from grove.operator.caches.cluster_pods import ClusterPod
from grove.operator.keys import ReplicaKey
from grove.plan.model import Plan
from grove.plan.placement.assignment import GangName, Waiting
from grove.plan.placement.decision import asked_unit
from grove.plan.replica import plan_replica
from grove.reasons.model import ObjectName, WaitReason
from grove.topology.placement.answers import NoFit
from grove.topology.placement.model import Problem, Unit
from grove.topology.placement.solve import solve


class PlanFindings:
    """What the plans of an operator say that leads from now on, and what its placement decides on all gangs
    that wait. Nodes must be listed."""

    def __init__(self, operator: DryOperator) -> None:
        self._operator = operator
        operator.observe_existing()
        operator.run_rounds()
        pods = operator.caches.cluster_pods
        assert pods is not None
        self._pods_on: dict[str, list[UsedBy]] = {}
        for pod in pods:
            if node := pod.node or pod.nominated_node:
                self._pods_on.setdefault(node, []).append(_used_by(pod))

    def reasons(self, workload: PodCliqueSet) -> dict[str, WaitReason]:
        """By gang of a set, why there is no place for it; also gangs that are not created yet."""
        meta = workload.metadata
        keys = [ReplicaKey(meta.namespace, meta.name, index) for index in range(workload.spec.replicas)]
        return {
            gang.name: decision.reason
            for gang, decision in self._operator.decisions(keys).items()
            if isinstance(decision, Waiting) and decision.reason is not None
        }

    def conditions(self, workload: PodCliqueSet, replicas: Iterable[int]) -> Iterator[WaitReason]:
        """What the plans of replicas write into the condition `Waiting` of gangs, cliques and groups."""
        meta = workload.metadata
        for index in replicas:
            key = ReplicaKey(meta.namespace, meta.name, index)
            plan = self._operator.attempt(key, partial(self._plan, key))
            for update in plan.status_updates if plan is not None else ():
                about = ObjectName(update.target.kind, update.target.name)
                yield from waiting_reasons(update.desired.conditions, about)

    def _plan(self, key: ReplicaKey) -> Plan:
        snapshot = self._operator.observer.replica(key)
        return plan_replica(snapshot, self._operator.now) if snapshot is not None else Plan()

    def details(self, namespace: str, gangs: Iterable[str]) -> list[GangExplanation]:
        """Where gangs without a place might go, and what would help."""
        found = []
        for name in gangs:
            decided = self._operator.decided.get(GangName(namespace, name))
            if decided is not None and isinstance(decided.decision, Waiting):
                found.append(self._explain(name, decided))
        return found

    def _explain(self, name: str, decided: DecidedGang) -> GangExplanation:
        demand = decided.demand
        index = self._operator.placement.capacity.index(demand.levels)
        unit = asked_unit(index, demand, {})
        problem = Problem(unit, further=demand.further)
        answer, pods = solve(index, problem), len(demand.pods)
        if not isinstance(answer, NoFit):
            return GangExplanation(name, pods, _level(unit))
        resource = short_resource(index, unit, answer)
        rows = domain_rows(index, unit, resource)
        held = holders(index, closest_domain(answer), resource, self._used_on)
        helping = remedies(index, problem, answer, self._priority(decided), self._used_on)
        return GangExplanation(
            name,
            pods,
            _level(unit),
            tuple(rows[: timing.EXPLAINED_ROWS]),
            max(0, len(rows) - timing.EXPLAINED_ROWS),
            tuple(held[: timing.EXPLAINED_ROWS]),
            max(0, len(held) - timing.EXPLAINED_ROWS),
            tuple(helping),
        )

    def _priority(self, decided: DecidedGang) -> int:
        """The lowest priority of the gang's pods."""
        classes = map(self._operator.caches.priority_class, decided.demand.priority_classes)
        return min((each.value if each is not None else 0 for each in classes), default=0)

    def _used_on(self, node: str) -> Iterable[UsedBy]:
        return self._pods_on.get(node, ())


def _used_by(pod: ClusterPod) -> UsedBy:
    ref = ObjectRef(POD, pod.name, pod.namespace)
    return UsedBy(ref, pod.profile.priority, pod.profile.requests, pod.gang)


def _level(unit: Unit) -> str:
    if unit.required:
        return unit.required.rpartition("/")[2]
    return next((found for part in unit.parts if (found := _level(part))), "")
