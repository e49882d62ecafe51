"""How many pods a set asks for, and the size of its largest PodGang: what admission and plans compare with
limits.

Computed from the replica counts alone: no object is built or listed. A PodClique counts as at least one pod,
and so does a replica: each is an object, with or without pods. A group counts at least `minAvailable`
replicas, even where `replicas` is lower.

A PodGang names all its pods, and the size of an object is limited (etcd: 1.5 MiB); so the number of pods in
one gang is limited by the length of their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from grove.api.naming import names
from grove.api.types.podcliqueset import CliqueTemplate, PodCliqueSetTemplate, ScalingGroupTemplate

LARGEST_GANG = 1_400_000
"""Bytes that the pod references of one PodGang may take. The rest is for its metadata and status."""
_REFERENCE = len('{"namespace":"","name":"-abcde"},')
_POD_GROUP = 100
"""Bytes of a pod group in a PodGang, besides its name and its pod references."""


class Live(NamedTuple):
    """The existing cliques or groups of one template: how many, and the sum of their counts."""

    parts: int = 0
    total: int = 0

    def __add__(self, other: Live) -> Live:  # type: ignore[override]
        return Live(self.parts + other.parts, self.total + other.total)

    def __sub__(self, other: Live) -> Live:
        return Live(self.parts - other.parts, self.total - other.total)

    def with_missing(self, wanted: int, each: int) -> int:
        """The sum, with `each` for every one that is still to be created."""
        return self.total + max(0, wanted - self.parts) * each


NONE = Live()


def of_clique(replicas: int) -> int:
    """How many pods a clique counts as."""
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
    """The pods that a set asks for. Existing cliques and groups, given by the name of their template, count
    with their actual replicas."""
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
    # Existing cliques without a template, such as those that upstream created, count with their actual pods.
    without_template = sum(live.total for name, live in cliques.items() if name not in copies)
    return max(replicas, pods + without_template)


class GangSize(NamedTuple):
    """The size of a PodGang."""

    pods: int
    size: int
    """The size of its pod references, in bytes."""

    @property
    def fits(self) -> bool:
        return self.size <= LARGEST_GANG

    def __add__(self, other: GangSize) -> GangSize:  # type: ignore[override]
        return GangSize(self.pods + other.pods, self.size + other.size)

    def times(self, count: int) -> GangSize:
        return GangSize(self.pods * count, self.size * count)


def of_references(namespace: str, clique: str, pods: int) -> GangSize:
    """What the pods of a clique, by its full name, add to the size of a gang."""
    each = _REFERENCE + len(namespace) + len(clique)
    return GangSize(pods, _POD_GROUP + len(clique) + pods * each)


def largest_gang(namespace: str, set_name: str, replicas: int, template: PodCliqueSetTemplate) -> GangSize:
    """The largest PodGang that a set would have according to its template."""
    index = max(0, replicas - 1)
    known = {clique.name: clique for clique in template.cliques}
    grouped = template.grouped_cliques
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
    """The cliques of a group, each with the highest index of the group's replicas."""
    highest = of_group(group.replicas, group.min_available) - 1
    return ((name, highest) for name in group.clique_names if name in known)
