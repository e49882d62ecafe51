"""Validation of topology constraints: the topology they refer to, their domains, and the order of domains.

The rules apply as soon as the graph or any component has a constraint. There are no default constraints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from grove.api.field_errors import FieldError, forbidden, invalid, required, unsupported
from grove.dynamo.context import GraphContext, runs_on_grove
from grove.dynamo.graph import Graph
from grove.dynamo.render import topology_affinity

DEPLOYMENT = "spec.topologyConstraint"
NAMES = ("clusterTopologyName", "topologyProfile", "topologyName")
_IS_DOMAIN = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?").fullmatch
_IMMUTABLE = "cannot be changed: delete and recreate the DynamoGraphDeployment"


class GraphPackConstraint(Struct, frozen=True):
    """A constraint and its field path."""

    path: str
    domain: str


def pack_constraints(graph: Graph) -> list[GraphPackConstraint]:
    """All constraints, that of the graph first."""
    whole = (
        [GraphPackConstraint(f"{DEPLOYMENT}.packDomain", graph.topology.domain)]
        if graph.topology.domain
        else []
    )
    return whole + [
        GraphPackConstraint(f"{each.path}.topologyConstraint.packDomain", each.domain)
        for each in graph.components
        if each.domain
    ]


def resolve(graph: Graph, known: GraphContext) -> str:
    """The topology of the constraints: the one that the graph names, else the configured one, else the only
    one that exists; empty if none of these applies."""
    if name := graph.topology.name or known.topology.default_topology_name:
        return name
    return next(iter(known.topologies)) if len(known.topologies) == 1 else ""


def on_create(graph: Graph, known: GraphContext) -> list[FieldError]:
    """Errors of the constraints of a new graph. The order of domains is only checked if all of them exist."""
    found = pack_constraints(graph)
    if not found:
        return [required(f"{DEPLOYMENT}.packDomain", _NOTHING)] if graph.topology.name else []
    if wrong := list(_unknown_domains(found, known)):
        return wrong
    if not runs_on_grove(graph):
        wrong = list(_unmapped(found, known)) or list(
            _broader_than_deployment(found, known.topology.allowed_domains)
        )
        return wrong or list(topology_affinity.problems(graph, known.topology))
    if not known.topology_aware:
        why = "topology-aware scheduling is disabled: set config.topologyAwareScheduling.enabled"
        return [forbidden(place.path, why) for place in found]
    name = resolve(graph, known)
    if not name:
        listed = ", ".join(sorted(known.topologies)) or "none"
        return [required(f"{DEPLOYMENT}.{NAMES[0]}", f"name a topology; existing topologies: {listed}")]
    if (levels := known.topologies.get(name)) is None:
        path = f"{DEPLOYMENT}.{NAMES[0]}"
        return [invalid(path, name, f'ClusterTopology or ClusterTopologyBinding "{name}" not found')]
    return list(_no_levels(found, name, levels)) or list(_broader_than_deployment(found, levels))


_NOTHING = "a topology is named without a constraint: set packDomain here or in a component"


def on_update(old: Graph, new: Graph) -> Iterator[FieldError]:
    """Constraints are immutable: running pods cannot be moved to other domains."""
    if old.topology != new.topology:
        yield forbidden(DEPLOYMENT, _IMMUTABLE)
    before = {each.name: each.domain for each in old.components}
    for component in new.components:
        if before.get(component.name, component.domain) != component.domain:
            yield forbidden(f"{component.path}.topologyConstraint", _IMMUTABLE)


def _unknown_domains(found: Sequence[GraphPackConstraint], known: GraphContext) -> Iterator[FieldError]:
    allowed = known.topology.allowed_domains
    for place in found:
        if not _IS_DOMAIN(place.domain):
            why = "must be lower case letters, digits and inner hyphens, and start with a letter"
            yield invalid(place.path, place.domain, why)
        elif allowed and place.domain not in allowed:
            yield unsupported(place.path, place.domain, tuple(allowed))


def _no_levels(
    found: Sequence[GraphPackConstraint], name: str, levels: Sequence[str]
) -> Iterator[FieldError]:
    for place in found:
        if place.domain not in levels:
            known_levels = ", ".join(sorted(levels))
            yield invalid(
                place.path, place.domain, f"is no level of topology {name}, which has {known_levels}"
            )


def _broader_than_deployment(
    found: Sequence[GraphPackConstraint], levels: Sequence[str]
) -> Iterator[FieldError]:
    """Errors of components whose domain is broader than that of the graph."""
    if not found[0].path.startswith(DEPLOYMENT) or found[0].domain not in levels:
        return
    whole, *parts = found
    for place in parts:
        if place.domain in levels and levels.index(place.domain) < levels.index(whole.domain):
            why = f"must be {whole.domain}, the domain of the graph, or narrower"
            yield invalid(place.path, place.domain, why)


def _unmapped(found: Sequence[GraphPackConstraint], known: GraphContext) -> Iterator[FieldError]:
    """Errors of domains that are not mapped to a node label, without Grove."""
    topology = known.topology
    for place in found:
        if not topology.mode:
            why = (
                "cannot be enforced without Grove: set config.dynamo.topologyAwareScheduling.mode to kueue "
                "or affinity, or use Grove"
            )
            yield forbidden(place.path, why)
        elif place.domain not in topology.domain_to_label_mapping:
            why = "has no node label in config.dynamo.topologyAwareScheduling.domainToLabelMapping"
            yield invalid(place.path, place.domain, why)
