"""Which nodes the pods of fabric domains are on. They decide on the partition of pods that join later: of
other gangs of the replica, or, in a domain that several sets share, of any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from grove.plan.placement.assignment import Assignment, Decision, GangName
from grove.plan.placement.demand import Demand, FabricDomain, pod_name, walk
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Partition, Unit

NodesByDomain = Mapping[FabricDomain, frozenset[str]]


class DomainMembers:
    """The nodes of domains: those of bound pods, and those assigned to pods that are not bound yet."""

    def __init__(self, bound: NodesByDomain, assigned: Mapping[GangName, NodesByDomain]) -> None:
        self._bound = bound
        self._assigned: dict[FabricDomain, dict[GangName, frozenset[str]]] = {}
        """By domain, so that a gang finds the others of its domains without a look at all gangs."""
        self._domains: dict[GangName, Collection[FabricDomain]] = {}
        for gang, nodes in assigned.items():
            self._replace(gang, nodes)

    def assign(self, demand: Demand, decision: Decision | None) -> None:
        """Replace what is assigned to a gang."""
        if demand.domains:
            self._replace(demand.gang, assigned_nodes(demand, decision))

    def of(self, demand: Demand) -> NodesByDomain:
        """The nodes of the domains that a gang joins, without what is assigned to the gang itself."""
        return {
            each.domain: self._bound.get(each.domain, frozenset()).union(
                *(nodes for gang, nodes in self._assigned.get(each.domain, {}).items() if gang != demand.gang)
            )
            for each in demand.domains
        }

    def _replace(self, gang: GangName, nodes: NodesByDomain) -> None:
        for domain in self._domains.get(gang, ()):
            del self._assigned[domain][gang]
        self._domains[gang] = tuple(nodes)
        for domain, each in nodes.items():
            self._assigned.setdefault(domain, {})[gang] = each


def assigned_nodes(
    demand: Demand, decision: Decision | None, bound: Collection[str] = ()
) -> dict[FabricDomain, frozenset[str]]:
    """By fabric domain, the nodes of a gang's pods in it that are not bound yet. `bound`: the names of pods
    that are bound meanwhile."""
    if not demand.domains or not isinstance(decision, Assignment) or decision.failed:
        return {}
    nodes = {
        pod_name(pod.slot): node
        for pod in demand.unbound
        if pod.name not in bound and (node := decision.nodes.get(pod.slot))
    }
    found: dict[FabricDomain, set[str]] = {}
    for unit in walk(demand.unit):
        for pod in unit.pods:
            if node := nodes.get(pod.name):
                for number in pod.shape.partitions:
                    found.setdefault(demand.domains[number].domain, set()).add(node)
    return {domain: frozenset(each) for domain, each in found.items()}


def partitions_of(
    index: ClusterIndex, unit: Unit, demand: Demand, members: NodesByDomain
) -> tuple[Partition, ...]:
    """The partitions of a gang: with the value of most pods of the domain that have nodes already."""
    return tuple(
        Partition(
            each.key, each.required, _value(index, each.key, _nodes(unit, number, members, each.domain))
        )
        for number, each in enumerate(demand.domains)
    )


def _nodes(unit: Unit, number: int, members: NodesByDomain, domain: FabricDomain) -> Collection[str]:
    own = {
        pod.node for part in walk(unit) for pod in part.pods if pod.node and number in pod.shape.partitions
    }
    return own.union(members.get(domain, ()))


def _value(index: ClusterIndex, key: str, nodes: Collection[str]) -> str:
    """The value that most of the nodes have; empty if none has the label."""
    found = (index.node(index.ids[name]).labels.get(key, "") for name in nodes if name in index.ids)
    counts = Counter(filter(None, found))
    return min(counts, key=lambda value: (-counts[value], value), default="")
