"""How close together the pods of a gang must sit: the constraints of the set, put where schedulers look.

base gang      the set's constraint; each replica of a group that has one; each clique's
scaled gang    the group's constraint, or the set's if it has none; each clique's
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from grove.api import names
from grove.api.sets import PodCliqueSet
from grove.plan.expand import Gang
from grove.topology.constraints import Topology, translated

Body = dict[str, Any]


class Packing(Struct, frozen=True):
    """The constraints of one gang, in node label keys."""

    topology: str = ""
    """The topology that they mean; empty if there are none."""
    gang: Body | None = None
    parts: tuple[Body, ...] = ()
    """Replicas of groups whose pods must sit closer together than the gang."""
    cliques: Mapping[str, Body] = {}

    def of_gang(self) -> Body:
        """What is added to the spec of the gang."""
        fields = {"topologyConstraint": self.gang, "topologyConstraintGroupConfigs": self.parts}
        return {name: value for name, value in fields.items() if value}

    def of_clique(self, clique: str) -> Body:
        """What is added to the gang's entry for a clique."""
        return {"topologyConstraint": self.cliques[clique]} if clique in self.cliques else {}


def pack(workload: PodCliqueSet, gang: Gang, topology: Topology | None) -> Packing:
    """The constraints of a gang; none if constraints are switched off."""
    if topology is None:
        return Packing()
    whole = _whole(workload, gang, topology)
    parts = () if gang.base_gang else _parts(gang, topology)
    cliques = {
        clique.name: constraint
        for clique in gang.cliques
        if (constraint := translated(clique.template.topology_constraint, topology))
    }
    constrained = whole or cliques or any("topologyConstraint" in part for part in parts)
    return Packing(topology.name if constrained else "", whole, parts, cliques)


def _whole(workload: PodCliqueSet, gang: Gang, topology: Topology) -> Body | None:
    constraint = workload.spec.template.topology_constraint
    if gang.base_gang:
        groups = (clique.group for clique in gang.cliques if clique.group is not None)
        own = (group.template.topology_constraint for group in groups)
        constraint = next(own, None) or constraint
    return translated(constraint, topology)


def _parts(gang: Gang, topology: Topology) -> tuple[Body, ...]:
    """One for each replica of a group that asks for something, whether or not the topology has it: which
    pods belong together does not change with its levels."""
    parts: dict[str, Body] = {}
    for clique in gang.cliques:
        if clique.group is None or clique.group.template.topology_constraint is None:
            continue
        name = names.group_replica(clique.group.name, clique.group_replica)
        part = parts.setdefault(name, {"name": name, "podGroupNames": ()})
        part["podGroupNames"] += (clique.name,)
        if constraint := translated(clique.group.template.topology_constraint, topology):
            part["topologyConstraint"] = constraint
    return tuple(parts.values())
