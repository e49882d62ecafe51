"""On which nodes volumes can be used, in the terms of node affinity.

A bound volume names its nodes. For one that is bound when its first pod is scheduled, the StorageClass may
limit them; whether there is such a volume, or room for a new one, is not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from grove import timing
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
    """The nodes that match both. Terms multiply with each volume: beyond a limit the other side is not
    modelled, and so assumed to fit."""
    if one is None or other is None:
        return other if one is None else one
    multiplies = len(one) > 1 and len(other) > 1
    if one == other or (multiplies and len(one) * len(other) > timing.NODE_TERMS):
        return one
    return tuple(dict.fromkeys(_combined(a, b) for a in one for b in other))


def _combined(a: Term, b: Term) -> Term:
    return Term(_distinct(a.expressions, b.expressions), _distinct(a.fields, b.fields))


def _distinct(*written: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(written)))


def _requirements(written: Iterable[NodeRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, each.values) for each in written)
