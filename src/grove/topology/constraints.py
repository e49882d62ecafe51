"""The topology constraints of a set: the topology and the domains that they name, and their node label keys.

Users name domains (`rack`), schedulers read node label keys (`example.com/rack`). A domain that the topology
does not have, or no longer has, is left out: the rest of the constraint applies, and all of it again once the
topology has the domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from grove.api.types.clustertopology import ClusterTopologySpec
from grove.api.types.podcliqueset import PodCliqueSetTemplate
from grove.api.types.topology_constraint import TopologyConstraint

Body = dict[str, Any]


class ResolvedTopology(Struct, frozen=True):
    """The topology that a set names, with its levels if it exists."""

    name: str
    """Empty if the set has no constraints, or does not name a topology."""
    keys: Mapping[str, str] = {}
    """The node label of each domain, from broad to narrow."""
    references: Mapping[str, str] = {}
    """By scheduler, the name of its topology object, where the operator does not manage that object."""
    found: bool = False
    """Whether a topology of this name exists."""


def read(name: str, spec: ClusterTopologySpec | None) -> ResolvedTopology:
    """The topology of this name; `spec` is None if it does not exist."""
    if spec is None:
        return ResolvedTopology(name)
    keys = {level.domain: level.key for level in spec.levels}
    return ResolvedTopology(name, keys, dict(spec.references), found=True)


def all_constraints(template: PodCliqueSetTemplate) -> Iterator[TopologyConstraint]:
    """All constraints of a set: its own, those of its groups, those of its cliques."""
    found: list[TopologyConstraint | None] = [template.topology_constraint]
    found += [group.topology_constraint for group in template.pod_clique_scaling_groups]
    found += [clique.topology_constraint for clique in template.cliques]
    return (constraint for constraint in found if constraint is not None)


def topology_name_of(template: PodCliqueSetTemplate) -> str:
    """The topology that a set names: the first one found, as admission requires all to be the same."""
    return next((each.topology_name for each in all_constraints(template) if each.topology_name), "")


def domains(template: PodCliqueSetTemplate) -> frozenset[str]:
    """The domains that a set names, required and preferred."""
    return frozenset(d for each in all_constraints(template) for d in (each.required, each.preferred) if d)


def to_label_keys(constraint: TopologyConstraint | None, topology: ResolvedTopology) -> Body | None:
    """A constraint in node label keys; None if the topology has none of its domains."""
    if constraint is None:
        return None
    wanted = {"required": constraint.required, "preferred": constraint.preferred}
    pack = {how: topology.keys[domain] for how, domain in wanted.items() if domain in topology.keys}
    return {"packConstraint": pack} if pack else None
