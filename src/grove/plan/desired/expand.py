"""Expands a set to the layout of one replica: its groups, cliques and gangs, with names and counts.

Counts belong to autoscalers and users: an existing clique or group keeps its own count, the template's is for
one that is not created yet. A part that is scaled to 0 leaves its gang.

    base gang      every clique outside of groups, and of each group the replicas below minAvailable
    scaled gangs   one for each further replica of a group
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from grove.api.naming import names
from grove.api.types.podclique import PodCliqueSpec
from grove.api.types.podcliqueset import (
    CliqueTemplate,
    PodCliqueSet,
    ScalingGroupTemplate,
)
from grove.fabrics.resolved import ReplicaDomains, ResolvedDomain
from grove.plan.desired.restarts import requests_hash, restart_requests, restart_tokens
from grove.plan.desired.template_hash import combine_hashes, template_hash


class Held(Protocol):
    """What a held replica has (see `desired.limits`)."""

    @property
    def groups(self) -> Mapping[str, tuple[int, ...]]:
        """Of each group, the existing replicas."""
        ...

    @property
    def cliques(self) -> Mapping[str, int]:
        """Of each existing clique, how many pods it keeps."""
        ...


class Group(Struct, frozen=True, gc=False):
    """A scaling group that a replica has."""

    name: str
    template: ScalingGroupTemplate
    replicas: int
    min_available: int
    present: tuple[int, ...] | None = None
    """In a held replica, the existing replicas of the group; None: all that it asks for."""

    @property
    def indices(self) -> Sequence[int]:
        """The indices of its replicas."""
        return range(self.replicas) if self.present is None else self.present

    @property
    def needed(self) -> Sequence[int]:
        """The indices of its replicas that belong to the base gang."""
        if self.present is None:
            return range(self.min_available)
        return [index for index in self.present if index < self.min_available]


class Clique(Struct, frozen=True, gc=False):
    """A clique that a replica has."""

    name: str
    template: CliqueTemplate
    replicas: int
    min_available: int
    gang: str
    template_hash: str
    base_gang: str = ""
    """The gang that must be scheduled first; empty in the base gang itself."""
    group: Group | None = None
    group_replica: int = 0
    fabric_domains: tuple[ResolvedDomain, ...] = ()
    """The fabric domains that its pods join."""
    restarts: tuple[str, ...] = ()
    """The tokens of the restarts that its pods must be created after."""


class Gang(Struct, frozen=True, gc=False):
    """A gang that a replica has, with the cliques that have pods in it."""

    name: str
    cliques: tuple[Clique, ...]
    base_gang: str = ""


class ReplicaLayout(Struct, frozen=True, gc=False):
    """All that one replica consists of."""

    groups: tuple[Group, ...]
    cliques: tuple[Clique, ...]
    gangs: tuple[Gang, ...]
    generation_hash: str
    """The hash of the templates of all cliques of the set, and of its restarts."""


def min_available(spec: PodCliqueSpec) -> int:
    """How many pods of a clique are required."""
    return spec.replicas if spec.min_available is None else spec.min_available


def expand(
    workload: PodCliqueSet,
    index: int,
    group_counts: Mapping[str, int],
    clique_counts: Mapping[str, int],
    domains: ReplicaDomains | None = None,
    held: Held | None = None,
) -> ReplicaLayout:
    """Returns the layout of replica `index`, with the counts of existing groups and cliques, by name. Of a
    held replica, only existing cliques and group replicas; their counts are what it keeps."""
    template, set_name = workload.spec.template, workload.metadata.name
    parts = _CliqueBuilder(workload, index, held.cliques if held else clique_counts, domains or {})
    groups = tuple(
        _group(set_name, index, group, group_counts, held) for group in template.pod_clique_scaling_groups
    )
    grouped = template.grouped_cliques
    cliques = [
        parts.clique(names.clique(set_name, index, clique.name), clique.name)
        for clique in template.cliques
        if clique.name not in grouped
    ]
    for group in groups:
        cliques += parts.members(group)
    if held is not None:
        cliques = [clique for clique in cliques if clique.name in held.cliques]
    return ReplicaLayout(groups, tuple(cliques), _gangs(parts.base, cliques), parts.generation_hash)


def _group(
    set_name: str, index: int, template: ScalingGroupTemplate, counts: Mapping[str, int], held: Held | None
) -> Group:
    name = names.group(set_name, index, template.name)
    present = held.groups.get(name, ()) if held is not None else None
    return Group(name, template, counts.get(name, template.replicas), template.min_available, present)


class _CliqueBuilder:
    """Builds the cliques of one replica from the templates."""

    def __init__(
        self,
        workload: PodCliqueSet,
        index: int,
        counts: Mapping[str, int],
        domains: ReplicaDomains,
    ) -> None:
        template, self.base = workload.spec.template, names.base_gang(workload.metadata.name, index)
        self._index, self._counts, self._domains = index, counts, domains
        self._requests = restart_requests(workload.metadata.annotations)
        hashes = [template_hash(clique, template.priority_class_name) for clique in template.cliques]
        self.generation_hash = combine_hashes(hashes, requests_hash(self._requests))
        self._templates = {
            clique.name: (clique, hash_) for clique, hash_ in zip(template.cliques, hashes, strict=True)
        }

    def clique(self, name: str, template_name: str, scaled_gang: str = "", **member: Any) -> Clique:
        group, replica = member.get("group"), member.get("group_replica", 0)
        if template_name not in self._templates:
            raise ValueError(f"podCliqueScalingGroups refers to clique {template_name}, which does not exist")
        template, hash_ = self._templates[template_name]
        return Clique(
            name=name,
            template=template,
            replicas=self._counts.get(name, template.spec.replicas),
            min_available=min_available(template.spec),
            gang=scaled_gang or self.base,
            template_hash=hash_,
            base_gang=self.base if scaled_gang else "",
            fabric_domains=self._domains[template_name][replica] if template_name in self._domains else (),
            restarts=restart_tokens(
                self._requests, self._index, template_name, group.template.name if group else "", replica
            ),
            **member,
        )

    def members(self, group: Group) -> Iterator[Clique]:
        for replica in group.indices:
            in_base = replica < group.min_available
            gang = "" if in_base else names.scaled_gang(group.name, replica, group.min_available)
            for template_name in group.template.clique_names:
                name = names.member_clique(group.name, replica, template_name)
                yield self.clique(name, template_name, gang, group=group, group_replica=replica)


def _gangs(base: str, cliques: list[Clique]) -> tuple[Gang, ...]:
    members: dict[str, list[Clique]] = {base: []}
    for clique in cliques:
        members.setdefault(clique.gang, [])
        if clique.replicas > 0:
            members[clique.gang].append(clique)
    return tuple(Gang(name, tuple(inside), "" if name == base else base) for name, inside in members.items())
