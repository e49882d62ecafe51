"""How many pods a set asks for, by arithmetic alone: nothing is made or listed to find it out.

A PodClique counts as at least one and a replica too: each is an object, with or without pods. A group counts
as many replicas as `minAvailable` asks for, even where `replicas` is lower.

A PodGang names all its pods, and an object has a largest size (etcd takes 1.5 MiB); so the pods of one gang
are limited by the length of their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from grove.api.naming import names
from grove.api.types.podcliqueset import CliqueTemplate, PodCliqueSetTemplate, ScalingGroupTemplate

LARGEST_GANG = 1_400_000
"""Bytes that the references of one PodGang may take. The rest is for its metadata and status."""
_REFERENCE = len('{"namespace":"","name":"-abcde"},')
_POD_GROUP = 100
"""Bytes for what a PodGang says of a clique, besides its name and its pods."""


class Live(NamedTuple):
    """The parts made from one template that exist: how many, and the sum of their counts."""

    parts: int = 0
    total: int = 0

    def __add__(self, other: Live) -> Live:  # type: ignore[override]
        return Live(self.parts + other.parts, self.total + other.total)

    def __sub__(self, other: Live) -> Live:
        return Live(self.parts - other.parts, self.total - other.total)

    def with_missing(self, wanted: int, each: int) -> int:
        """The sum with those that are still to be made."""
        return self.total + max(0, wanted - self.parts) * each


NONE = Live()


def of_clique(replicas: int) -> int:
    """What a clique counts as."""
    return max(1, replicas)


def of_group(replicas: int, min_available: int) -> int:
    """How many replicas a group counts as having."""
    return max(1, replicas, min_available)


def of_set(
    replicas: int,
    template: PodCliqueSetTemplate,
    cliques: Mapping[str, Live] | None = None,
    groups: Mapping[str, Live] | None = None,
) -> int:
    """The pods that a set asks for. Cliques and groups that exist count as they are, those of one template
    added up: by name of the template."""
    cliques, groups = cliques or {}, groups or {}
    known = {clique.name: clique for clique in template.cliques}
    copies = dict.fromkeys(known, max(0, replicas))
    for group in template.pod_clique_scaling_groups:
        each = of_group(group.replicas, group.min_available)
        inside = groups.get(group.name, NONE).with_missing(max(0, replicas), each)
        copies |= {name: inside for name in group.clique_names if name in known}
    pods = sum(
        cliques.get(name, NONE).with_missing(count, of_clique(known[name].spec.replicas))
        for name, count in copies.items()
    )
    # Parts whose template is not known, such as those that upstream made, count as they are.
    strange = sum(live.total for name, live in cliques.items() if name not in copies)
    return max(replicas, pods + strange)


class GangSize(NamedTuple):
    """What the largest PodGang of a replica would be."""

    pods: int
    size: int
    """Of its references, in bytes."""

    @property
    def fits(self) -> bool:
        return self.size <= LARGEST_GANG

    def __add__(self, other: GangSize) -> GangSize:  # type: ignore[override]
        return GangSize(self.pods + other.pods, self.size + other.size)

    def times(self, count: int) -> GangSize:
        return GangSize(self.pods * count, self.size * count)


def of_references(namespace: str, clique: str, pods: int) -> GangSize:
    """What the pods of a clique, by its full name, add to a gang."""
    each = _REFERENCE + len(namespace) + len(clique)
    return GangSize(pods, _POD_GROUP + len(clique) + pods * each)


def largest_gang(namespace: str, set_name: str, replicas: int, template: PodCliqueSetTemplate) -> GangSize:
    """The largest PodGang that a set would have, by its template."""
    index = max(0, replicas - 1)
    known = {clique.name: clique for clique in template.cliques}
    grouped = {name for group in template.pod_clique_scaling_groups for name in group.clique_names}
    alone = (clique for clique in template.cliques if clique.name not in grouped)
    base = GangSize(0, 0)
    for clique in alone:
        base += of_references(namespace, names.clique(set_name, index, clique.name), clique.spec.replicas)
    gangs = []
    for group in template.pod_clique_scaling_groups:
        one = GangSize(0, 0)
        for name, replica in _members(group, known):
            full = names.member_clique(names.group(set_name, index, group.name), replica, name)
            one += of_references(namespace, full, known[name].spec.replicas)
        base += one.times(group.min_available)
        gangs.append(one)
    return max(base, *gangs, key=lambda gang: gang.size) if gangs else base


def _members(group: ScalingGroupTemplate, known: Mapping[str, CliqueTemplate]) -> Iterator[tuple[str, int]]:
    """The cliques of a group, each with the highest index of its replicas."""
    highest = of_group(group.replicas, group.min_available) - 1
    return ((name, highest) for name in group.clique_names if name in known)
