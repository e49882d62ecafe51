"""Describes the decision on a gang: the domain of each unit, or what is missing in which domain. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grove.dry_run.model import Missing, PlannedGang, PlannedUnit
from grove.plan.placement.assignment import Assignment, Decision, PodSlot
from grove.plan.placement.cluster_capacity import ClusterCapacity
from grove.plan.placement.decision import asked_unit
from grove.plan.placement.demand import Demand, pod_name, walk
from grove.plan.placement.domain_members import NodesByDomain, partitions_of
from grove.reasons.placement import shortage_text
from grove.topology.placement.answers import NoFit
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import CLUSTER, Domain, Problem, Unit
from grove.topology.placement.solve import solve


def planned_gang(
    capacity: ClusterCapacity,
    demand: Demand,
    decision: Decision,
    base_gang: str = "",
    members: NodesByDomain | None = None,
) -> PlannedGang:
    """A gang as it is reported. `members`: the nodes with pods of its fabric domains."""
    name, pods = demand.gang.name, len(demand.pods)
    if not isinstance(decision, Assignment):
        missing = () if decision.gave_up else tuple(missing_in_domains(capacity, demand, members or {}))
        return PlannedGang(
            name,
            pods,
            False,
            base_gang,
            not decision.gave_up,
            decision.gave_up,
            message=decision.message,
            missing=missing,
        )
    by_attempt = demand.by_attempt(decision.attempt)
    index = capacity.domains(by_attempt.levels)
    after = next((each.after for each in demand.fallbacks if each.attempt == decision.attempt), 0.0)
    return PlannedGang(
        name,
        pods,
        True,
        base_gang,
        fallback=decision.attempt,
        after=after,
        preempts=decision.preempts,
        units=tuple(_units(index, by_attempt, decision.nodes)),
        unplaced=sum(1 for pod in demand.unbound if not decision.nodes.get(pod.slot)),
    )


def unit_domains(index: ClusterIndex, demand: Demand, nodes: Mapping[PodSlot, str]) -> dict[str, Domain]:
    """The domain of each unit of a gang whose pods have these nodes: that of its required level, otherwise
    the narrowest one that holds all of its pods."""
    return {unit.name: _domain(index, unit, _nodes_of(unit, demand, nodes)) for unit in walk(demand.unit)}


def _units(index: ClusterIndex, demand: Demand, nodes: Mapping[PodSlot, str]) -> Iterator[PlannedUnit]:
    domains = unit_domains(index, demand, nodes)
    for unit in walk(demand.unit):
        found, domain = _nodes_of(unit, demand, nodes), domains[unit.name]
        pods = sum(len(each.pods) for each in walk(unit))
        yield PlannedUnit(unit.name, pods, len(found), domain, level_of(index, domain), unit.required)


def _nodes_of(unit: Unit, demand: Demand, nodes: Mapping[PodSlot, str]) -> set[str]:
    names = {pod.name for each in walk(unit) for pod in each.pods}
    bound = {pod.node for pod in demand.pods if pod.node and pod_name(pod.slot) in names}
    return bound | {node for slot, node in nodes.items() if node and pod_name(slot) in names}


def _domain(index: ClusterIndex, unit: Unit, nodes: set[str]) -> Domain:
    known = [index.ids[node] for node in nodes if node in index.ids]
    if not known:
        return CLUSTER
    if unit.required in index.levels:
        level = index.levels.index(unit.required)
        return next((found for each in known if (found := index.domain_at(each, level))), CLUSTER)
    return max(set.intersection(*(set(index.domains_of[each]) for each in known)), key=len)


def level_of(index: ClusterIndex, domain: Domain) -> str:
    """The label of the level of a domain; empty for the whole cluster."""
    return index.levels[len(domain) - 1] if domain else ""


def missing_in_domains(
    capacity: ClusterCapacity, demand: Demand, members: NodesByDomain
) -> Iterator[Missing]:
    """What a gang that waits lacks, in the domains that come closest."""
    index = capacity.index(demand.levels)
    unit = asked_unit(index, demand, {})
    partitions = partitions_of(index, unit, demand, members)
    problem = Problem(unit, further=demand.further, partitions=partitions)
    answer = solve(index, problem)
    for report in answer.reports if isinstance(answer, NoFit) else ():
        for each in report.shortages:
            yield Missing(
                report.domain,
                level_of(index, report.domain),
                report.unit,
                each.reason.value,
                shortage_text(each),
                each.nodes,
                each.resource,
                each.have,
                each.need,
            )
