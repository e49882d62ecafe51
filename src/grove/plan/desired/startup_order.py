"""Computes which cliques a clique starts after, as names of PodCliques.

Startup order holds inside a gang, never across gangs. In the base gang a parent that belongs to a group
stands for the group's replicas below minAvailable; in a scaled gang only parents of the same group count, in
the same replica.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grove.api.naming import names
from grove.api.types.podcliqueset import PodCliqueSet, StartupType
from grove.plan.desired.expand import Clique, ReplicaLayout

StartupParents = Mapping[str, int]
"""PodCliques to wait for, and how many ready pods each must have."""


def is_ordered(workload: PodCliqueSet) -> bool:
    """Whether any clique of a set starts after another."""
    return any(_parents(workload, clique.name) for clique in workload.spec.template.cliques)


def starts_after(
    workload: PodCliqueSet, index: int, layout: ReplicaLayout, clique: Clique
) -> tuple[str, ...]:
    """The PodCliques that must be ready before this one starts."""
    found: list[str] = []
    for parent in _parents(workload, clique.template.name):
        found += _expand_parent(workload.metadata.name, index, layout, parent, clique)
    return tuple(found)


def startup_parents(
    workload: PodCliqueSet, index: int, layout: ReplicaLayout, clique: Clique
) -> StartupParents:
    """The cliques that a pod waits for if it is created now, with the number of ready pods.

    A clique that is scaled to 0 has left the gang and counts as available: its own parents take its place. A
    clique that does not exist is waited for without end, and the init container reports it.
    """
    known = {found.name: found for found in layout.cliques}
    required: dict[str, int] = {}
    for parent in _active_parents(workload, layout, clique):
        for name in _expand_parent(workload.metadata.name, index, layout, parent, clique):
            required[name] = known[name].min_available if name in known else 1
    return required


def _active_parents(workload: PodCliqueSet, layout: ReplicaLayout, clique: Clique) -> Iterator[str]:
    """The parents of a clique; those that are scaled to 0 are replaced by their own parents. Cycles end."""
    seen = {clique.template.name}
    queue = list(_parents(workload, clique.template.name))
    while queue:
        parent = queue.pop(0)
        if parent in seen:
            continue
        seen.add(parent)
        if _is_scaled_to_zero(layout, parent):
            queue += _parents(workload, parent)
        else:
            yield parent


def _is_scaled_to_zero(layout: ReplicaLayout, template: str) -> bool:
    """Whether a clique of the template has no pods anywhere in the replica."""
    groups = [group for group in layout.groups if template in group.template.clique_names]
    found = [clique for clique in layout.cliques if clique.template.name == template]
    return any(group.replicas == 0 for group in groups) or (
        bool(found) and all(clique.replicas == 0 for clique in found)
    )


def _parents(workload: PodCliqueSet, name: str) -> tuple[str, ...]:
    template = workload.spec.template
    order = [clique.name for clique in template.cliques]
    if name not in order:
        return ()
    if template.clique_startup_type is StartupType.IN_ORDER:
        position = order.index(name)
        return (order[position - 1],) if position else ()
    if template.clique_startup_type is StartupType.EXPLICIT:
        return template.cliques[order.index(name)].spec.starts_after
    return ()


def _expand_parent(set_name: str, index: int, layout: ReplicaLayout, parent: str, child: Clique) -> list[str]:
    group = next((group for group in layout.groups if parent in group.template.clique_names), None)
    if child.base_gang:
        if group is None or child.group is None or group.name != child.group.name:
            return []
        return [names.member_clique(group.name, child.group_replica, parent)]
    if group is None:
        return [names.clique(set_name, index, parent)]
    return [names.member_clique(group.name, replica, parent) for replica in group.needed]
