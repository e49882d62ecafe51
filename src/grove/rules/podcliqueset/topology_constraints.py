"""What is refused of topology constraints: on a set, its scaling groups and its cliques."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from grove.api.types.clustertopology import TopologyConstraint
from grove.rules.decode import Workload
from grove.rules.model import Facts, FieldError, forbidden, invalid, required

_SET = "spec.template.topologyConstraint"
_NAME = f"{_SET}.topologyName"


class ConstrainedPart(Struct, frozen=True):
    """A part of a set with its constraint, and the nearest constrained part around it."""

    path: str
    kind: str
    name: str
    constraint: TopologyConstraint
    parent: ConstrainedPart | None = None

    @property
    def topology(self) -> str:
        """The topology that is meant: the part's own word, or that of whatever is around it."""
        return self.constraint.topology_name or (self.parent.topology if self.parent else "")

    @property
    def key(self) -> tuple[str, str]:
        """What tells it apart from other parts, in an old and a new set alike."""
        return self.kind, self.name

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'" if self.name else self.kind


def constrained_parts(workload: Workload) -> list[ConstrainedPart]:
    """Every constraint of a set: its own first, then those of its groups, then those of its cliques."""
    template = workload.template
    own = template.topology_constraint
    whole = ConstrainedPart(_SET, "PodCliqueSet", "", own) if own is not None else None
    found = [whole] if whole is not None else []
    parent: dict[str, ConstrainedPart | None] = {}
    for index, group in enumerate(template.pod_clique_scaling_groups):
        path = f"spec.template.podCliqueScalingGroups[{index}].topologyConstraint"
        place = whole
        if group.topology_constraint is not None:
            place = ConstrainedPart(
                path, "PodCliqueScalingGroup", group.name, group.topology_constraint, whole
            )
            found.append(place)
        parent |= dict.fromkeys(group.clique_names, place)
    for index, clique in enumerate(template.cliques):
        path = f"spec.template.cliques[{index}].topologyConstraint"
        if clique.topology_constraint is not None:
            near = parent.get(clique.name, whole)
            found.append(ConstrainedPart(path, "PodClique", clique.name, clique.topology_constraint, near))
    return found


def topologies_named(workload: Workload) -> frozenset[str]:
    """The topologies that constraints name."""
    return frozenset(place.constraint.topology_name for place in constrained_parts(workload)) - {""}


def on_create(workload: Workload, facts: Facts) -> list[FieldError]:
    """Whether they may be there, which topology they mean, whether it has their domains, and whether a part
    asks for no more room than what is around it has. Each question waits for the one before it."""
    found = constrained_parts(workload)
    if not found:
        return []
    if not facts.topology_aware:
        why = "topology constraints are not allowed when Topology Aware Scheduling is disabled"
        return [invalid(place.path, place.constraint, why) for place in found]
    if errors := [*_unnamed_topology(found), *_different_topologies(found)]:
        return errors
    topology = found[0].topology
    levels = facts.topologies.get(topology)
    if levels is None:
        return [invalid(_NAME, topology, f'ClusterTopology or ClusterTopologyBinding "{topology}" not found')]
    ranks = {domain: rank for rank, domain in enumerate(levels)}
    return list(_unknown_domains(found, ranks)) or list(_broader_than_parent(found, ranks))


def warnings(workload: Workload, facts: Facts) -> Iterator[str]:
    """A preference that says less than the demand beside it."""
    for place in constrained_parts(workload):
        levels = facts.topologies.get(place.topology, ())
        required_, preferred = place.constraint.required, place.constraint.preferred
        if required_ in levels and preferred in levels and levels.index(preferred) < levels.index(required_):
            yield f"{place.path}.pack.preferred is coarser than {place.path}.pack.required and is redundant"


def on_update(old: Workload, new: Workload, facts: Facts) -> list[FieldError]:
    """They stay what they were, but for their spelling, and for a topology name that an old set lacks."""
    before = {place.key: place for place in constrained_parts(old)}
    after = {place.key: place for place in constrained_parts(new)}
    if not before and not after:
        return []
    nameless = any(not place.topology for place in before.values())
    if nameless and _only_named(before, after):
        return on_create(new, facts) if _names(before) != _names(after) else []
    return list(_changes(before, after, _parts(old)))


def _unnamed_topology(found: list[ConstrainedPart]) -> Iterator[FieldError]:
    why = "topologyName is required when topologyConstraint is set and cannot be inherited"
    yield from (required(f"{place.path}.topologyName", why) for place in found if not place.topology)


def _different_topologies(found: list[ConstrainedPart]) -> Iterator[FieldError]:
    if len({place.topology for place in found} - {""}) > 1:
        why = (
            "all topologyConstraint.topologyName values within a PodCliqueSet must match in the current "
            "implementation"
        )
        for place in found:
            if name := place.constraint.topology_name:
                yield invalid(f"{place.path}.topologyName", name, why)


def _unknown_domains(found: list[ConstrainedPart], ranks: Mapping[str, int]) -> Iterator[FieldError]:
    known = f"[{', '.join(ranks)}]"
    for place in found:
        pack = place.constraint.pack
        for field, domain in (
            ("packDomain", place.constraint.pack_domain),
            ("pack.required", pack.required if pack else ""),
            ("pack.preferred", pack.preferred if pack else ""),
        ):
            if domain and domain not in ranks:
                why = f"topology domain '{domain}' does not exist in cluster topology {known}"
                yield invalid(f"{place.path}.{field}", domain, why)


def _broader_than_parent(found: list[ConstrainedPart], ranks: Mapping[str, int]) -> Iterator[FieldError]:
    """A part in a domain that is broader than the one around it. Asked of a set and all its parts, and of a
    group and its cliques."""
    for child in found:
        outer = child.parent
        while outer is not None:
            yield from _pair(outer, child, ranks)
            outer = outer.parent


def _pair(outer: ConstrainedPart, child: ConstrainedPart, ranks: Mapping[str, int]) -> Iterator[FieldError]:
    for path, large, small in (
        (outer.path, outer.constraint.required, child.constraint.required),
        (f"{outer.path}.pack.preferred", outer.constraint.preferred, child.constraint.preferred),
    ):
        if large and small and ranks[large] > ranks[small]:
            why = (
                f"{outer} topology constraint domain '{large}' is narrower than {child} topology constraint "
                f"domain '{small}'"
            )
            yield invalid(path, large, why)


_Parts = Mapping[tuple[str, str], ConstrainedPart]


def _names(parts: _Parts) -> dict[tuple[str, str], str]:
    return {key: place.constraint.topology_name for key, place in parts.items()}


def _only_named(before: _Parts, after: _Parts) -> bool:
    """Whether at most names were added to constraints that had none."""
    return before.keys() == after.keys() and all(
        _packs(old) == _packs(after[key]) and old.constraint.topology_name in ("", _named(after[key]))
        for key, old in before.items()
    )


def _named(place: ConstrainedPart) -> str:
    return place.constraint.topology_name


def _packs(place: ConstrainedPart) -> tuple[str, str]:
    return place.constraint.required, place.constraint.preferred


def _parts(workload: Workload) -> set[tuple[str, str]]:
    """Every part that could have had a constraint."""
    template = workload.template
    cliques = {("PodClique", clique.name) for clique in template.cliques}
    groups = {("PodCliqueScalingGroup", group.name) for group in template.pod_clique_scaling_groups}
    return {("PodCliqueSet", ""), *cliques, *groups}


def _changes(before: _Parts, after: _Parts, known: set[tuple[str, str]]) -> Iterator[FieldError]:
    for key, old in before.items():
        if key not in after:
            yield forbidden(old.path, f"{old} topology constraint cannot be removed after creation")
    for key, new in after.items():
        if key in before:
            yield from _change(before[key], new)
        elif key in known:
            yield forbidden(new.path, f"{new} topology constraint cannot be added after creation")


def _change(old: ConstrainedPart, new: ConstrainedPart) -> Iterator[FieldError]:
    if _named(old) != _named(new):
        why = f'topologyName cannot be changed from "{_named(old)}" to "{_named(new)}"'
        yield forbidden(f"{new.path}.topologyName", why)
    if _packs(old) != _packs(new) and _respelled(old, new):
        why = (
            f"{new} topology constraint migration can only move packDomain to pack.required without changing "
            f"anything else: it was {_packing(old)} and would be {_packing(new)}"
        )
        yield forbidden(new.path, why)
    elif _packs(old) != _packs(new):
        why = f"{new} topology constraint cannot be changed from {_packing(old)} to {_packing(new)}"
        yield forbidden(new.path, why)


def _respelled(old: ConstrainedPart, new: ConstrainedPart) -> bool:
    """Whether the old spelling gave way to the new one."""
    now = new.constraint
    return bool(old.constraint.pack_domain and not now.pack_domain and now.pack and now.pack.required)


def _packing(place: ConstrainedPart) -> str:
    wanted, preferred = _packs(place)
    return f"required={wanted} preferred={preferred}"
