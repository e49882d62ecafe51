"""Which fabric domains a set is in, with which replicas; and the reverse, from the name of a domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

from msgspec import Struct

from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import Scope
from grove.fabrics.registry import Providers
from grove.fabrics.requirements import DomainRequirement, DomainRequirements, Mode, domain_requirements

GroupCount = Callable[[int, str], int]
"""The number of replicas of a scaling group, by the set's replica and the group's name in the set."""
Members = Callable[[str], Iterable[int]]
"""The replicas of a scaling group to consider, by the group's name in the set."""


class DomainMembership(Struct, frozen=True):
    """The membership of a set in a domain: the requirement, and the replicas."""

    requirement: DomainRequirement
    replicas: tuple[int, ...]
    cliques: tuple[str, ...] = ()
    """The cliques whose pods join it, by their names in the set. For the status of sets only."""


def domains_of_replica(
    workload: PodCliqueSet, found: DomainRequirements, replica: int, members: Members
) -> Iterator[tuple[DomainRequirement, str]]:
    """The domains that one replica of a set is in."""
    for name, asked in found.items():
        for requirement in asked:
            group = _group(workload, name) if requirement.scope is Scope.GROUP_REPLICA else None
            inside = members(group) if group is not None else ()
            for member in inside if requirement.scope is Scope.GROUP_REPLICA else (0,):
                yield requirement, requirement.name(replica, member)


def memberships(
    workload: PodCliqueSet, providers: Providers, count: GroupCount
) -> dict[tuple[str, str], DomainMembership]:
    """All domains that a set is in, by vendor and name. For a set within the limit on its pods."""
    found = domain_requirements(workload, providers)
    if not found:
        return {}
    inside: dict[tuple[str, str], tuple[DomainRequirement, dict[int, None]]] = {}
    for replica in range(workload.spec.replicas):
        members = partial(_all_members, replica, count)
        for requirement, name in domains_of_replica(workload, found, replica, members):
            _, replicas = inside.setdefault((requirement.vendor, name), (requirement, {}))
            replicas[replica] = None
    return {
        key: DomainMembership(requirement, tuple(replicas), _cliques(found, requirement))
        for key, (requirement, replicas) in inside.items()
    }


def _cliques(found: DomainRequirements, requirement: DomainRequirement) -> tuple[str, ...]:
    same = (requirement.vendor, requirement.name(0))
    return tuple(
        name for name, asked in found.items() if any((each.vendor, each.name(0)) == same for each in asked)
    )


def membership_in(
    workload: PodCliqueSet, providers: Providers, vendor: str, name: str, count: GroupCount
) -> DomainMembership | None:
    """The membership of a set in the domain of that name; None if it is not in it. For a domain that all
    replicas share, only the first replica is listed."""
    found = domain_requirements(workload, providers)
    for requirement in dict.fromkeys(chain.from_iterable(found.values())):
        if requirement.vendor != vendor or (indices := _indices(requirement, name)) is None:
            continue
        if requirement.scope is Scope.SHARED:
            if workload.spec.replicas > 0:
                return DomainMembership(requirement, (0,))
            continue
        replica = indices[0]
        if replica < workload.spec.replicas and _has_member(workload, found, requirement, indices, count):
            return DomainMembership(requirement, (replica,))
    return None


def _has_member(
    workload: PodCliqueSet,
    found: DomainRequirements,
    requirement: DomainRequirement,
    indices: tuple[int, ...],
    count: GroupCount,
) -> bool:
    """Whether the group replica that a domain is for is below the group's replica count."""
    if requirement.scope is not Scope.GROUP_REPLICA:
        return True
    groups = (_group(workload, name) for name, asked in found.items() if requirement in asked)
    return any(group is not None and indices[1] < count(indices[0], group) for group in groups)


def _indices(requirement: DomainRequirement, name: str) -> tuple[int, ...] | None:
    """The indices for which the requirement gives the domain this name; None if there are none."""
    if requirement.scope is Scope.SHARED:
        return () if name == requirement.base else None
    tail = f"-{requirement.group}" if requirement.mode is Mode.AUTO and requirement.group else ""
    if not name.startswith(f"{requirement.base}-") or not name.endswith(tail):
        return None
    written = name[len(requirement.base) + 1 : len(name) - len(tail)].split("-")
    if not all(word.isdecimal() for word in written):
        return None
    indices = tuple(map(int, written))
    if (
        len(indices) != (2 if requirement.scope is Scope.GROUP_REPLICA else 1)
        or requirement.name(*indices) != name
    ):
        return None
    return indices


def _group(workload: PodCliqueSet, clique: str) -> str | None:
    """The scaling group of a clique."""
    groups = workload.spec.template.pod_clique_scaling_groups
    return next((group.name for group in groups if clique in group.clique_names), None)


def _all_members(replica: int, count: GroupCount, group: str) -> range:
    return range(count(replica, group))
