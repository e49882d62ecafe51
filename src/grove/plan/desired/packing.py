"""Translates the topology constraints of a set to those of a gang, in node label keys.

base gang      the set's constraint; each group replica's if the group has one; each clique's
scaled gang    the group's constraint, or the set's if it has none; each clique's
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from grove.api.naming import names
from grove.api.types.podcliqueset import PodCliqueSetTemplate
from grove.api.types.topology_constraint import TopologyConstraint
from grove.plan.desired.expand import Gang
from grove.topology.constraints import ResolvedTopology, domains, to_label_keys

Body = dict[str, Any]


class Packing(Struct, frozen=True):
    """The constraints of one gang, in node label keys."""

    topology: str = ""
    """The topology that they refer to; empty if there are none."""
    gang: Body | None = None
    parts: tuple[Body, ...] = ()
    """Group replicas with a narrower constraint than the gang."""
    cliques: Mapping[str, Body] = {}

    def of_gang(self) -> Body:
        """The fields of the gang's spec."""
        fields = {"topologyConstraint": self.gang, "topologyConstraintGroupConfigs": self.parts}
        return {name: value for name, value in fields.items() if value}

    def of_clique(self, clique: str) -> Body:
        """The fields of the gang's entry for a clique."""
        return {"topologyConstraint": self.cliques[clique]} if clique in self.cliques else {}


def pack(template: PodCliqueSetTemplate, gang: Gang, topology: ResolvedTopology | None) -> Packing:
    """Returns the constraints of a gang; none if topology constraints are disabled."""
    if topology is None:
        return Packing()
    gang_constraint = _gang_constraint(template, gang, topology)
    parts = () if gang.base_gang else _group_constraints(gang, topology)
    cliques = {
        clique.name: constraint
        for clique in gang.cliques
        if (constraint := to_label_keys(clique.template.topology_constraint, topology))
    }
    constrained = gang_constraint or cliques or any("topologyConstraint" in part for part in parts)
    return Packing(topology.name if constrained else "", gang_constraint, parts, cliques)


def domains_of_gang(template: PodCliqueSetTemplate, gang: Gang) -> frozenset[str]:
    """The domains that constraints of a gang name, required and preferred, whether or not they exist."""
    named = domains(template)
    if not named:
        return named
    packing = pack(template, gang, ResolvedTopology("any", {domain: domain for domain in named}, found=True))
    parts = (part.get("topologyConstraint") for part in packing.parts)
    constraints = filter(None, (packing.gang, *parts, *packing.cliques.values()))
    return frozenset(domain for each in constraints for domain in each["packConstraint"].values())


def _gang_constraint(template: PodCliqueSetTemplate, gang: Gang, topology: ResolvedTopology) -> Body | None:
    constraint: TopologyConstraint | None = template.topology_constraint
    if gang.base_gang:
        groups = (clique.group for clique in gang.cliques if clique.group is not None)
        own = (group.template.topology_constraint for group in groups)
        constraint = next(own, None) or constraint
    return to_label_keys(constraint, topology)


def _group_constraints(gang: Gang, topology: ResolvedTopology) -> tuple[Body, ...]:
    """One for each group replica with a constraint, whether or not the topology has its levels: which pods
    belong together does not change with the levels."""
    parts: dict[str, Body] = {}
    for clique in gang.cliques:
        if clique.group is None or clique.group.template.topology_constraint is None:
            continue
        name = names.group_replica(clique.group.name, clique.group_replica)
        part = parts.setdefault(name, {"name": name, "podGroupNames": ()})
        part["podGroupNames"] += (clique.name,)
        if constraint := to_label_keys(clique.group.template.topology_constraint, topology):
            part["topologyConstraint"] = constraint
    return tuple(parts.values())
