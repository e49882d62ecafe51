"""What a set asks of its topology: which one it means, which domains it names, and what they are as labels.

Users name domains (`rack`), schedulers read node label keys (`example.com/rack`). A domain that the topology
does not have, or not any more, is not translated: the rest of the constraint stays, and comes back whole when
the domain comes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from grove.api.types.clustertopology import ClusterTopologySpec, TopologyConstraint
from grove.api.types.podcliqueset import PodCliqueSetTemplate

Body = dict[str, Any]


class ResolvedTopology(Struct, frozen=True):
    """The topology that a set means, as far as it is known."""

    name: str
    """Empty if the set asks for nothing, or does not say which topology it means."""
    keys: Mapping[str, str] = {}
    """The node label of each domain, broad to narrow."""
    references: Mapping[str, str] = {}
    """By scheduler, its own topology object where somebody else manages that."""
    found: bool = False
    """Whether there is a topology of this name."""


def read(name: str, spec: ClusterTopologySpec | None) -> ResolvedTopology:
    """A topology, or what is known of one that is not there."""
    if spec is None:
        return ResolvedTopology(name)
    keys = {level.domain: level.key for level in spec.levels}
    return ResolvedTopology(name, keys, dict(spec.references), found=True)


def all_constraints(template: PodCliqueSetTemplate) -> Iterator[TopologyConstraint]:
    """All constraints of a set: its own, those of its groups, those of its cliques."""
    found = [template.topology_constraint]
    found += [group.topology_constraint for group in template.pod_clique_scaling_groups]
    found += [clique.topology_constraint for clique in template.cliques]
    return (constraint for constraint in found if constraint is not None)


def topology_name_of(template: PodCliqueSetTemplate) -> str:
    """The topology that a set means: the first that is named, as all must be the same."""
    return next((each.topology_name for each in all_constraints(template) if each.topology_name), "")


def domains(template: PodCliqueSetTemplate) -> frozenset[str]:
    """The domains that a set names, must and should alike."""
    return frozenset(d for each in all_constraints(template) for d in (each.required, each.preferred) if d)


def to_label_keys(constraint: TopologyConstraint | None, topology: ResolvedTopology) -> Body | None:
    """A constraint in node label keys; None if nothing is left of it."""
    if constraint is None:
        return None
    wanted = {"required": constraint.required, "preferred": constraint.preferred}
    pack = {how: topology.keys[domain] for how, domain in wanted.items() if domain in topology.keys}
    return {"packConstraint": pack} if pack else None
