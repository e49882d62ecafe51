"""Where a gang is, for its status: computed from the nodes of its bound pods, never from what was decided.

So it shows also when a constraint no longer holds because nodes got other labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.api.types.podgang import (
    GangPlacement,
    GangTopologyConstraint,
    PlacedUnit,
    PodGang,
    PodGangStatus,
    PodGroup,
)
from grove.topology.constraints import ResolvedTopology
from grove.topology.placement.membership import domain_path
from grove.topology.placement.model import Domain

Labels = Mapping[str, str]


class _ConstrainedUnit(Struct, frozen=True):
    """A gang, a group replica or a clique with a constraint. `nodes`: the labels of its pods' nodes."""

    name: str
    required: str
    preferred: str
    nodes: tuple[Labels, ...]


def with_placement(
    status: PodGangStatus,
    gang: PodGang,
    topology: ResolvedTopology | None,
    nodes: Mapping[str, Labels],
    fallback: int | None = None,
) -> PodGangStatus:
    """The status with the placement of the gang, and its score. `nodes` has the labels of the node of each
    bound pod, by the name of the pod; `fallback` is the index of the fallback that the gang was placed by."""
    groups = {group.name: _nodes(group, nodes) for group in gang.spec.pod_groups}
    if not any(groups.values()):
        return without_placement(status)
    units = list(_units(gang, groups))
    levels = tuple(topology.keys.values()) if topology is not None else ()
    required = [_domains(unit.nodes, unit.required, levels) for unit in units if unit.required]
    preferred = [_domains(unit.nodes, unit.preferred, levels) for unit in units if unit.preferred]
    placement = GangPlacement(
        topology_name=topology.name if topology is not None else "",
        fallback=fallback,
        units=tuple(map(_placed, units)),
        required_met=all(map(_is_one_domain, required)),
        preferred_met=all(map(_is_one_domain, preferred)),
    )
    return replace(status, placement=placement, placement_score=_score(preferred))


def unmet_units(
    gang: PodGang, topology: ResolvedTopology | None, nodes: Mapping[str, Labels] | None
) -> dict[str, str]:
    """The parts of a gang whose bound pods are not in one domain of their required level, with the label of
    that level. `nodes` is as above; None if the nodes are not known."""
    if not nodes:
        return {}
    groups = {group.name: _nodes(group, nodes) for group in gang.spec.pod_groups}
    levels = tuple(topology.keys.values()) if topology is not None else ()
    return {
        unit.name: unit.required
        for unit in _units(gang, groups)
        if unit.required and not _is_one_domain(_domains(unit.nodes, unit.required, levels))
    }


def without_placement(status: PodGangStatus) -> PodGangStatus:
    """The status of a gang that the operator does not place, or that has no bound pod. The score of another
    scheduler is kept."""
    return replace(status, placement=None, placement_score=None) if status.placement is not None else status


def _units(gang: PodGang, groups: Mapping[str, tuple[Labels, ...]]) -> Iterator[_ConstrainedUnit]:
    spec = gang.spec
    parts: list[tuple[str, GangTopologyConstraint | None, Iterable[str]]] = [
        (gang.metadata.name, spec.topology_constraint, groups),
        *(
            (each.name, each.topology_constraint, each.pod_group_names)
            for each in spec.topology_constraint_group_configs
        ),
        *((group.name, group.topology_constraint, (group.name,)) for group in spec.pod_groups),
    ]
    for name, constraint, members in parts:
        pack = constraint.pack_constraint if constraint is not None else None
        nodes = tuple(labels for member in members for labels in groups.get(member, ()))
        if pack is not None and (pack.required or pack.preferred) and nodes:
            yield _ConstrainedUnit(name, pack.required, pack.preferred, nodes)


def _nodes(group: PodGroup, nodes: Mapping[str, Labels]) -> tuple[Labels, ...]:
    return tuple(nodes[pod.name] for pod in group.pod_references if pod.name in nodes)


def _placed(unit: _ConstrainedUnit) -> PlacedUnit:
    key = unit.required or unit.preferred
    values = Counter(labels.get(key, "") for labels in unit.nodes)
    return PlacedUnit(unit.name, key, min(values, key=lambda value: (-values[value], value)))


def _domains(nodes: Iterable[Labels], key: str, levels: tuple[str, ...]) -> Counter[Domain]:
    """How many pods are in each domain of a level; `()`: on nodes without its label, or without that of a
    broader level. These belong to a domain: one rack label may occur in two blocks."""
    path = levels[: levels.index(key) + 1] if key in levels else (key,)
    found = (domain_path(labels, path) for labels in nodes)
    return Counter(domain if domain[-1] else () for domain in found)


def _is_one_domain(domains: Counter[Domain]) -> bool:
    return len(domains) == 1 and () not in domains


def _score(preferred: Iterable[Counter[Domain]]) -> float:
    """The mean over all units of the share of their pods in the domain that has most of them."""
    shares = [
        max((count for domain, count in domains.items() if domain), default=0) / domains.total()
        for domains in preferred
    ]
    return round(sum(shares) / len(shares), timing.PLACEMENT_SCORE_DIGITS) if shares else 1.0
