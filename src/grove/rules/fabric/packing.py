"""Rules about `grove.io/pack-domains`: whether the pods of each domain of a set are placed in one partition
of the fabric.

It may change: only pods that are created later are placed by it. Refused is only what no cluster could
fulfil; what depends on the nodes of the moment is a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from grove.api.configuration.types import DomainPacking
from grove.api.field_errors import FieldError, forbidden, unsupported
from grove.api.naming import annotations as keys
from grove.fabrics import requirements
from grove.fabrics.packing import packing_of
from grove.fabrics.provider import FabricDomainProvider, Scope
from grove.fabrics.requirements import DomainRequirement
from grove.rules.decode import Workload
from grove.rules.model import Facts

_PATH = f"metadata.annotations.{keys.PACK_DOMAINS}"


def on_create(workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """Errors of the annotation, and of domains that are too large to be packed."""
    yield from _value_errors(workload)
    yield from _size_errors(workload, facts, _too_large_domains(workload, facts))


def on_update(old: Workload, new: Workload, facts: Facts) -> Iterator[FieldError]:
    """The errors that a change adds. A domain that was too large before may shrink in steps, or stay: the
    operator's own setting may have changed meanwhile."""
    if old.metadata.annotations.get(keys.PACK_DOMAINS) != new.metadata.annotations.get(keys.PACK_DOMAINS):
        yield from _value_errors(new)
    before = _too_large_domains(old, facts)
    grown = {
        requirement: pods
        for requirement, pods in _too_large_domains(new, facts).items()
        if pods > before.get(requirement, 0)
    }
    yield from _size_errors(new, facts, grown)


def _value_errors(workload: Workload) -> Iterator[FieldError]:
    value = workload.metadata.annotations.get(keys.PACK_DOMAINS)
    if value is not None and value not in set(DomainPacking):
        yield unsupported(_PATH, value, tuple(DomainPacking))


def _too_large_domains(workload: Workload, facts: Facts) -> dict[DomainRequirement, int]:
    """The pods of domains that must be packed and are larger than any partition."""
    if _packing(workload, facts) is not DomainPacking.REQUIRED:
        return {}
    return {
        requirement: pods
        for requirement, pods in _pods_by_domain(workload, facts).items()
        if 0 < facts.fabrics.of(requirement.vendor).partition_nodes < pods
    }


def _size_errors(
    workload: Workload, facts: Facts, too_large: Mapping[DomainRequirement, int]
) -> Iterator[FieldError]:
    by_annotation = keys.PACK_DOMAINS in workload.metadata.annotations
    for requirement, pods in too_large.items():
        provider = facts.fabrics.of(requirement.vendor)
        yield forbidden(_PATH, _too_large(requirement, pods, provider, by_annotation))


def warnings(workload: Workload, facts: Facts) -> Iterator[str]:
    """Domains that the largest partition of the cluster cannot hold now, where the nodes are known."""
    packing = _packing(workload, facts)
    if packing is DomainPacking.OFF:
        return
    outcome = "wait" if packing is DomainPacking.REQUIRED else "be split"
    for requirement, pods in _pods_by_domain(workload, facts).items():
        coverage = facts.channel_coverage.get(requirement.vendor)
        provider = facts.fabrics.of(requirement.vendor)
        if coverage is None or not provider.partition_label or coverage.largest_partition >= pods:
            continue
        if not coverage.largest_partition and packing is DomainPacking.PREFERRED:
            continue  # nodes have no partitions
        nodes = "1 node" if coverage.largest_partition == 1 else f"{coverage.largest_partition} nodes"
        yield (
            f"{provider.api.name} {_name(requirement)}: {pods} pods, {nodes} with a channel in the largest "
            f"partition ({provider.partition_label}): it will {outcome}"
        )


def _packing(workload: Workload, facts: Facts) -> DomainPacking:
    return packing_of(workload.metadata.annotations, facts.fabrics.packing)


def _pods_by_domain(workload: Workload, facts: Facts) -> Counter[DomainRequirement]:
    """By requirement, the pods of the largest domain that it leads to, as far as this set declares them."""
    found = requirements.of_template(
        workload.metadata.effective_name, workload.metadata.annotations, workload.template, facts.fabrics
    )
    pods: Counter[DomainRequirement] = Counter()
    groups = {
        name: group.replicas
        for group in workload.template.pod_clique_scaling_groups
        for name in group.clique_names
    }
    for clique in workload.template.cliques:
        for requirement in found.get(clique.name, ()):
            count = clique.spec.replicas
            if requirement.scope is not Scope.GROUP_REPLICA:
                count *= groups.get(clique.name, 1)
            if requirement.scope is Scope.SHARED:
                count *= workload.spec.replicas
            # Claims and options differ between the cliques of one domain.
            pods[replace(requirement, options=(), by_claim=())] += count
    return pods


def _name(requirement: DomainRequirement) -> str:
    """The name of a domain, that of the first replica if there are several."""
    return requirement.name(0)


def _too_large(
    requirement: DomainRequirement, pods: int, provider: FabricDomainProvider, by_annotation: bool
) -> str:
    where = "" if by_annotation else ", which network.packDomains of the operator's configuration sets"
    return (
        f"{DomainPacking.REQUIRED}{where}: {provider.api.name} {_name(requirement)} has {pods} pods, each on "
        f"a node of its own, and {provider.vendor} joins at most {provider.partition_nodes} nodes of a "
        f'partition: use "{DomainPacking.PREFERRED}", or fewer pods'
    )
