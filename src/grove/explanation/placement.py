"""Which gangs the solver finds no place for, why, and what would help: rounds of placement as the operator
runs them, on a cluster in which nothing else moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from grove import timing
from grove.api.naming import names
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.cluster_state.cache_loading import list_nodes
from grove.dry_run.operator import DryOperator
from grove.explanation.domains import closest_domain, domain_rows, short_resource
from grove.explanation.findings import waiting_reasons
from grove.explanation.model import GangExplanation, ObjectRef
from grove.explanation.remedies.ended_pods import UsedBy
from grove.explanation.remedies.what_if import holders, remedies
from grove.explanation.subtree import POD
from grove.operator.caches.cluster_pods import ClusterPod
from grove.operator.keys import ReplicaKey, replica_of, set_of
from grove.plan.model import Plan
from grove.plan.placement.assignment import GangName, Waiting
from grove.plan.placement.cluster_capacity import ObservedNode
from grove.plan.placement.decision import asked_unit
from grove.plan.placement.demand import Demand
from grove.plan.placement.domain_members import partitions_of
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
        self._held = _held(operator, operator.decide_existing().nominated)
        pods = operator.caches.cluster_pods
        assert pods is not None
        self._sets = {_name(gang): set_of(gang.metadata) for gang in operator.caches.gangs}
        scaled = {_name(gang) for gang in operator.caches.gangs if _scales_out(gang)}
        self._pods_on: dict[str, list[UsedBy]] = {}
        for pod in pods:
            if node := pod.node or pod.nominated_node:
                self._pods_on.setdefault(node, []).append(_used_by(pod, scaled))

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
        """Where gangs without a place might go, and what would help. What is held for a gang counts as free
        for it."""
        found = []
        for name in gangs:
            gang = GangName(namespace, name)
            demand = self._held.get(gang)
            decided = self._operator.decided.get(gang)
            if demand is None and decided is not None and isinstance(decided.decision, Waiting):
                demand = decided.demand
            if demand is not None:
                with self._operator.placement.capacity.without((gang,)):
                    found.append(self._explain(name, demand))
        return found

    def held(self, namespace: str) -> set[str]:
        """The gangs of a namespace that wait for room on nodes that are held for them."""
        return {gang.name for gang in self._held if gang.namespace == namespace}

    def _explain(self, name: str, demand: Demand) -> GangExplanation:
        others = partial(self._used_by_others, demand.gang)
        index = self._operator.placement.capacity.index(demand.levels)
        unit = asked_unit(index, demand, {})
        members = self._operator.placement.domain_nodes(demand)
        partitions = partitions_of(index, unit, demand, members)
        problem = Problem(unit, further=demand.further, partitions=partitions)
        answer, pods = solve(index, problem), len(demand.pods)
        if not isinstance(answer, NoFit):
            return GangExplanation(name, pods, _level(unit))
        resource = short_resource(index, unit, answer)
        rows = domain_rows(index, unit, resource, self._operator.placement.capacity.reserved_for)
        held = holders(index, closest_domain(answer), resource, others)
        helping = remedies(index, problem, answer, self._priority(demand), others)
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

    def _priority(self, demand: Demand) -> int:
        """The lowest priority of the gang's pods."""
        classes = map(self._operator.caches.priority_class, demand.priority_classes)
        return min((each.value if each is not None else 0 for each in classes), default=0)

    def _used_by_others(self, gang: GangName, node: str) -> Iterator[UsedBy]:
        """The pods on a node, without those of the gang itself that are nominated for it."""
        own = self._sets.get(gang)
        for each in self._pods_on.get(node, ()):
            of = GangName(each.pod.namespace, each.gang)
            if of != gang:
                same_set = own is not None and self._sets.get(of) == own
                yield replace(each, same_set=True) if same_set else each


def _held(operator: DryOperator, nominated: Iterable[Demand]) -> dict[GangName, Demand]:
    """Of gangs whose pods are nominated, those whose nodes have no room yet: the operator holds these."""
    view, capacity, demands = operator.view, operator.placement.capacity, tuple(nominated)
    if not view.require({key for demand in demands for key in demand.label_keys}):
        list_nodes(operator.state, operator.caches)
    # Rounds of placement read nodes only if they have something to decide.
    changed = view.take_changed_nodes() if demands else ()
    capacity.observe({name: ObservedNode(view.node(name), view.use_by_priority(name)) for name in changed})
    return {demand.gang: demand for demand in demands if capacity.occupied(demand.gang)}


def _used_by(pod: ClusterPod, scaled: Collection[GangName]) -> UsedBy:
    ref, gang = ObjectRef(POD, pod.name, pod.namespace), GangName(pod.namespace, pod.gang)
    return UsedBy(
        ref, pod.profile.priority, pod.profile.requests, pod.gang, gang in scaled, bound=bool(pod.node)
    )


def _name(gang: PodGang) -> GangName:
    return GangName(gang.metadata.namespace, gang.metadata.name)


def _scales_out(gang: PodGang) -> bool:
    """Whether a gang is a further replica of a scaling group."""
    of = replica_of(gang.metadata)
    return of is not None and gang.metadata.name != names.base_gang(of.set_name, of.replica)


def _level(unit: Unit) -> str:
    if unit.required:
        return unit.required.rpartition("/")[2]
    return next((found for part in unit.parts if (found := _level(part))), "")
