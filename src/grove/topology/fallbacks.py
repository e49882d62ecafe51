"""The fallbacks of a set's topology constraint: what is tried, in order, while no place is found for a gang.

A fallback replaces the topology, the required domain of the set, or both. All else stays: the preferred
domain, and the constraints of groups and cliques, which are read with the levels of the fallback's topology.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from grove.api.types.podcliqueset import PodCliqueSetTemplate
from grove.api.types.topology_constraint import SetTopologyConstraint, TopologyFallback, TopologyPack
from grove.topology.constraints import topology_name_of


def fallbacks_of(template: PodCliqueSetTemplate) -> tuple[TopologyFallback, ...]:
    """The fallbacks of a set, in the order in which they are tried."""
    return template.topology_constraint.fallbacks if template.topology_constraint is not None else ()


def with_fallback(template: PodCliqueSetTemplate, index: int) -> PodCliqueSetTemplate:
    """The template with one of its fallbacks in the place of its constraint."""
    own = template.topology_constraint
    assert own is not None
    fallback = own.fallbacks[index]
    pack = TopologyPack(fallback.pack_domain or own.required, own.preferred)
    constraint = SetTopologyConstraint(
        topology_name=fallback.topology_name or own.topology_name,
        pack=pack if pack.required or pack.preferred else None,
    )
    return replace(template, topology_constraint=constraint)


def attempts(template: PodCliqueSetTemplate) -> Iterator[PodCliqueSetTemplate]:
    """The template as it is, then with each of its fallbacks."""
    yield template
    for index, _ in enumerate(fallbacks_of(template)):
        yield with_fallback(template, index)


def topology_names(template: PodCliqueSetTemplate) -> frozenset[str]:
    """The topologies that a set names: in its constraints, and in its fallbacks."""
    return frozenset(topology_name_of(attempt) for attempt in attempts(template)) - {""}
