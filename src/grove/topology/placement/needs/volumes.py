"""On which nodes volumes can be used, in the terms of node affinity.

A bound volume names its nodes. For one that is bound when its first pod is scheduled, the StorageClass may
limit them; whether there is such a volume, or room for a new one, is not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.types.cluster.scheduling_pod import NodeRequirement
from grove.api.types.cluster.volume_objects import StorageClass, Volume
from grove.topology.placement.model import Requirement, Term

Terms = tuple[Term, ...] | None
"""One of them must match; None: any node."""


def nodes_of_volume(volume: Volume) -> Terms:
    """The nodes that can use a volume."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    return tuple(
        Term(_requirements(term.match_expressions), _requirements(term.match_fields))
        for term in affinity.required.node_selector_terms
    )


def nodes_of_class(found: StorageClass) -> Terms:
    """The nodes for which a class provisions volumes."""
    if not found.allowed_topologies:
        return None
    return tuple(
        Term(tuple(Requirement(each.key, "In", each.values) for each in term.match_label_expressions))
        for term in found.allowed_topologies
    )


def both(one: Terms, other: Terms) -> Terms:
    """The nodes that match both."""
    if one is None or other is None:
        return other if one is None else one
    return tuple(Term((*a.expressions, *b.expressions), (*a.fields, *b.fields)) for a in one for b in other)


def _requirements(written: Iterable[NodeRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, each.values) for each in written)
