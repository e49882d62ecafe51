"""Which cliques a clique starts after, as names of PodCliques.

Order holds inside a gang, never across gangs. In the base gang a parent that belongs to a group stands for
the group's replicas below minAvailable; in a scaled gang only parents of the same group count, in the same
replica.
"""

from __future__ import annotations

from grove.api import names
from grove.api.sets import PodCliqueSet, StartupType
from grove.plan.expand import Clique, Shape


def starts_after(workload: PodCliqueSet, index: int, shape: Shape, clique: Clique) -> tuple[str, ...]:
    """The PodCliques that must be ready before this one starts."""
    found: list[str] = []
    for parent in _parents(workload, clique.template.name):
        found += _expand_parent(workload.metadata.name, index, shape, parent, clique)
    return tuple(found)


def _parents(workload: PodCliqueSet, name: str) -> tuple[str, ...]:
    template = workload.spec.template
    order = [clique.name for clique in template.cliques]
    if template.clique_startup_type is StartupType.IN_ORDER:
        place = order.index(name)
        return (order[place - 1],) if place else ()
    if template.clique_startup_type is StartupType.EXPLICIT:
        return template.cliques[order.index(name)].spec.starts_after
    return ()


def _expand_parent(set_name: str, index: int, shape: Shape, parent: str, child: Clique) -> list[str]:
    group = next((group for group in shape.groups if parent in group.template.clique_names), None)
    if child.base_gang:
        if group is None or child.group is None or group.name != child.group.name:
            return []
        return [names.member_clique(group.name, child.group_replica, parent)]
    if group is None:
        return [names.clique(set_name, index, parent)]
    return [names.member_clique(group.name, replica, parent) for replica in range(group.min_available)]
