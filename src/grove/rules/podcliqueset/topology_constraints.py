"""Validation of the topology constraints of a set, its scaling groups and its cliques.

Fallbacks have their own module. Whether a scheduler can keep a constraint is decided by `scheduler_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from grove.api.field_errors import FieldError, forbidden, invalid, required
from grove.api.types.topology_constraint import TopologyConstraint
from grove.rules.decode import Workload
from grove.rules.model import Facts
from grove.topology.fallbacks import fallbacks_of

_SET = "spec.template.topologyConstraint"
_NAME = f"{_SET}.topologyName"
_DISABLED = (
    "topology constraints are not allowed when Topology Aware Scheduling is disabled: remove the constraint, "
    "or set topologyAwareScheduling.enabled in the operator's configuration"
)


class ConstrainedPart(Struct, frozen=True):
    """A part of a set with its constraint, and the nearest constrained part around it."""

    path: str
    kind: str
    name: str
    constraint: TopologyConstraint
    parent: ConstrainedPart | None = None

    @property
    def topology(self) -> str:
        """The name of the topology: the part's own, or that of the nearest part around it."""
        return self.constraint.topology_name or (self.parent.topology if self.parent else "")

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the part in the old and in the new set."""
        return self.kind, self.name

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'" if self.name else self.kind


def constrained_parts(workload: Workload) -> list[ConstrainedPart]:
    """All parts of a set with a constraint: the set first, then groups, then cliques."""
    template = workload.template
    own = template.topology_constraint
    whole = ConstrainedPart(_SET, "PodCliqueSet", "", own) if own is not None else None
    found = [whole] if whole is not None else []
    parent: dict[str, ConstrainedPart | None] = {}
    for index, group in enumerate(template.pod_clique_scaling_groups):
        path = f"spec.template.podCliqueScalingGroups[{index}].topologyConstraint"
        part = whole
        if group.topology_constraint is not None:
            part = ConstrainedPart(
                path, "PodCliqueScalingGroup", group.name, group.topology_constraint, whole
            )
            found.append(part)
        parent |= dict.fromkeys(group.clique_names, part)
    for index, clique in enumerate(template.cliques):
        path = f"spec.template.cliques[{index}].topologyConstraint"
        if clique.topology_constraint is not None:
            near = parent.get(clique.name, whole)
            found.append(ConstrainedPart(path, "PodClique", clique.name, clique.topology_constraint, near))
    return found


def topologies_named(workload: Workload) -> frozenset[str]:
    """The topologies that constraints name, and those that fallbacks name."""
    named = {part.constraint.topology_name for part in constrained_parts(workload)}
    return frozenset(named | {each.topology_name for each in fallbacks_of(workload.template)}) - {""}


def on_create(workload: Workload, facts: Facts) -> list[FieldError]:
    """Errors of constraints: whether the feature is enabled, which topology they name, whether it has their
    domains, and whether a part requires no broader domain than the part around it. A check runs only if the
    checks before it found nothing."""
    found = constrained_parts(workload)
    if not found:
        return []
    if not facts.topology_aware:
        return [invalid(part.path, part.constraint, _DISABLED) for part in found]
    if errors := [*_unnamed_topology(found), *_different_topologies(found)]:
        return errors
    topology = found[0].topology
    levels = facts.topologies.get(topology)
    if levels is None:
        return [invalid(_NAME, topology, f'ClusterTopology or ClusterTopologyBinding "{topology}" not found')]
    ranks = {domain: rank for rank, domain in enumerate(levels)}
    return list(_unknown_domains(found, ranks)) or list(_broader_than_parent(found, ranks))


def warnings(workload: Workload, facts: Facts) -> Iterator[str]:
    """A warning if no node has the label of a required domain, and if the preferred domain is broader than
    the required one."""
    for part in constrained_parts(workload):
        if label := facts.unlabelled.get(part.topology, {}).get(part.constraint.required):
            yield (
                f"{part.path}: no node has the label {label} of the required domain "
                f"{part.constraint.required}: pods wait until nodes have it"
            )
        levels = facts.topologies.get(part.topology, ())
        required_, preferred = part.constraint.required, part.constraint.preferred
        if required_ in levels and preferred in levels and levels.index(preferred) < levels.index(required_):
            yield f"{part.path}.pack.preferred is coarser than {part.path}.pack.required and is redundant"


def on_update(old: Workload, new: Workload, facts: Facts) -> list[FieldError]:
    """Errors for changed constraints. Allowed are moving `packDomain` to `pack.required` and back, and adding
    the topology name to a set that was stored without it."""
    before = {part.key: part for part in constrained_parts(old)}
    after = {part.key: part for part in constrained_parts(new)}
    if not before and not after:
        return []
    nameless = any(not part.topology for part in before.values())
    if nameless and _only_named(before, _without_added_name(before, after)):
        return on_create(new, facts) if _names(before) != _names(after) else []
    return list(_changes(before, after, _parts(old)))


def _unnamed_topology(found: list[ConstrainedPart]) -> Iterator[FieldError]:
    why = "topologyName is required when topologyConstraint is set and cannot be inherited"
    yield from (required(f"{part.path}.topologyName", why) for part in found if not part.topology)


def _different_topologies(found: list[ConstrainedPart]) -> Iterator[FieldError]:
    if len({part.topology for part in found} - {""}) > 1:
        why = (
            "all topologyConstraint.topologyName values within a PodCliqueSet must match in the current "
            "implementation"
        )
        for part in found:
            if name := part.constraint.topology_name:
                yield invalid(f"{part.path}.topologyName", name, why)


def _unknown_domains(found: list[ConstrainedPart], ranks: Mapping[str, int]) -> Iterator[FieldError]:
    known = f"[{', '.join(ranks)}]"
    for part in found:
        pack = part.constraint.pack
        for field, domain in (
            ("packDomain", part.constraint.pack_domain),
            ("pack.required", pack.required if pack else ""),
            ("pack.preferred", pack.preferred if pack else ""),
        ):
            if domain and domain not in ranks:
                why = f"topology domain '{domain}' does not exist in cluster topology {known}"
                yield invalid(f"{part.path}.{field}", domain, why)


def _broader_than_parent(found: list[ConstrainedPart], ranks: Mapping[str, int]) -> Iterator[FieldError]:
    """Errors for parts whose domain is broader than that of a part around them: of groups and cliques in the
    set, and of cliques in their group."""
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
_WHOLE = ("PodCliqueSet", "")
"""The key of the set itself."""


def _names(parts: _Parts) -> dict[tuple[str, str], str]:
    return {key: part.constraint.topology_name for key, part in parts.items()}


def _without_added_name(before: _Parts, after: _Parts) -> _Parts:
    """The parts without a constraint of the set that only names the topology of its groups and cliques."""
    added = after.get(_WHOLE)
    if added is None or _WHOLE in before or _packs(added) != ("", ""):
        return after
    return {key: part for key, part in after.items() if key != _WHOLE}


def _only_named(before: _Parts, after: _Parts) -> bool:
    """Whether nothing changed except topology names, added to constraints without one."""
    return before.keys() == after.keys() and all(
        _packs(old) == _packs(after[key]) and old.constraint.topology_name in ("", _named(after[key]))
        for key, old in before.items()
    )


def _named(part: ConstrainedPart) -> str:
    return part.constraint.topology_name


def _packs(part: ConstrainedPart) -> tuple[str, str]:
    return part.constraint.required, part.constraint.preferred


def _parts(workload: Workload) -> set[tuple[str, str]]:
    """The keys of all parts of the set, with and without a constraint."""
    template = workload.template
    cliques = {("PodClique", clique.name) for clique in template.cliques}
    groups = {("PodCliqueScalingGroup", group.name) for group in template.pod_clique_scaling_groups}
    return {_WHOLE, *cliques, *groups}


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
    if _packs(old) != _packs(new) and _migrated(old, new):
        why = (
            f"{new} topology constraint migration can only move packDomain to pack.required without changing "
            f"anything else: it was {_packing(old)} and would be {_packing(new)}"
        )
        yield forbidden(new.path, why)
    elif _packs(old) != _packs(new):
        why = f"{new} topology constraint cannot be changed from {_packing(old)} to {_packing(new)}"
        yield forbidden(new.path, why)


def _migrated(old: ConstrainedPart, new: ConstrainedPart) -> bool:
    """Whether `pack.required` replaces `packDomain`."""
    now = new.constraint
    return bool(old.constraint.pack_domain and not now.pack_domain and now.pack and now.pack.required)


def _packing(part: ConstrainedPart) -> str:
    required_, preferred = _packs(part)
    return f"required={required_} preferred={preferred}"
