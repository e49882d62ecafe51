"""Warnings about fabric domains: settings that are valid and probably not intended, or that the current nodes
cannot fulfil."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.naming import annotations as keys
from grove.api.types.pod import read_template
from grove.api.types.podcliqueset import CliqueTemplate
from grove.fabrics import requirements
from grove.fabrics.channel_coverage import coverage_problem
from grove.fabrics.provider import FabricDomainProvider, Scope
from grove.fabrics.requirements import DomainRequirements
from grove.fabrics.unserved import unserved_kind
from grove.rules.decode import Workload
from grove.rules.model import Facts

_AUTO = f"metadata.annotations.{keys.AUTO_MNNVL}"
_CLIQUES = "spec.template.cliques"


def warnings(workload: Workload, facts: Facts) -> Iterator[str]:
    """All warnings about the fabric domains of a new set."""
    auto, annotations = facts.fabrics.auto, workload.metadata.annotations
    domain_requirements = requirements.of_template(
        workload.metadata.effective_name, annotations, workload.template, facts.fabrics
    )
    if (
        annotations.get(keys.AUTO_MNNVL) == keys.AUTO_MNNVL_ENABLED
        and auto is not None
        and not domain_requirements
    ):
        yield f"{_AUTO} has no effect: no container requests accelerators of {auto.vendor}"
    for provider in facts.fabrics:
        for index, clique in enumerate(workload.template.cliques):
            if clique.annotations.get(provider.annotation_key):
                yield from _unlikely_use(workload, index, clique, provider)
    yield from _node_warnings(workload, facts, domain_requirements)
    for vendor in sorted(
        {requirement.vendor for each in domain_requirements.values() for requirement in each} & facts.unserved
    ):
        provider = facts.fabrics.of(vendor)
        unserved = unserved_kind(provider, outdated=vendor in facts.outdated)
        yield f"pods that need a {provider.api.name} will wait: {unserved}"


def update_warnings(old: Workload, new: Workload, facts: Facts) -> Iterator[str]:
    """Warns of cliques whose pods leave their domain, or do not get one."""
    yield from _left_domains(old, new, facts)
    yield from _absent_domains(old, new, facts)


def _left_domains(old: Workload, new: Workload, facts: Facts) -> Iterator[str]:
    """Cliques that no longer request the accelerators for which they have an automatic domain."""
    before, after = (
        requirements.of_template(
            each.metadata.effective_name, each.metadata.annotations, each.template, facts.fabrics
        )
        for each in (old, new)
    )
    for index, clique in enumerate(new.template.cliques):
        remaining = {requirement.vendor for requirement in after.get(clique.name, ())}
        for requirement in before.get(clique.name, ()):
            if requirement.vendor not in remaining:
                provider = facts.fabrics.of(requirement.vendor)
                yield (
                    f"{_CLIQUES}[{index}]: its pods will leave their {provider.api.name}: no container "
                    f"requests accelerators of {provider.vendor} any more; claims count only if they were in "
                    "the set when it was created"
                )


def _absent_domains(old: Workload, new: Workload, facts: Facts) -> Iterator[str]:
    """Cliques that begin to use accelerators in a set without automatic domains: whether a set has them is
    decided when it is created."""
    provider, annotations = facts.fabrics.auto, new.metadata.annotations
    if provider is None or not facts.network.auto_mnnvl_enabled or keys.AUTO_MNNVL in annotations:
        return
    if requirements.mnnvl_groups(annotations, new.template):
        return
    before = {
        clique.name for clique in old.template.cliques if requirements.uses_accelerators(clique, provider)
    }
    for index, clique in enumerate(new.template.cliques):
        if clique.name in before or clique.annotations.get(provider.annotation_key):
            continue
        if requirements.uses_accelerators(clique, provider):
            yield (
                f"{_CLIQUES}[{index}]: its pods will be in no {provider.api.name}: the set was created "
                f"without accelerators of {provider.vendor}, so without {keys.AUTO_MNNVL}; recreate the set "
                "to get domains"
            )


def _unlikely_use(
    workload: Workload, index: int, clique: CliqueTemplate, provider: FabricDomainProvider
) -> Iterator[str]:
    path = f"{_CLIQUES}[{index}].annotations.{provider.annotation_key}"
    by_claim = requirements.claims_of(workload.metadata.annotations).get(clique.name, ())
    if not requirements.uses_accelerators(clique, provider, by_claim):
        yield f"{path}: no container requests accelerators of {provider.vendor}; all containers get the claim"
    if workload.spec.replicas > 1 and requirements.scope_of(clique, provider) is Scope.SHARED:
        yield f"{path}: all replicas share one domain; set {provider.scope_key}: replica for one domain each"


def _node_warnings(
    workload: Workload, facts: Facts, domain_requirements: DomainRequirements
) -> Iterator[str]:
    """Warnings about the nodes, where they are known: some may have no channel, and each has only one."""
    required = {requirement.vendor for each in domain_requirements.values() for requirement in each}
    for vendor, coverage in facts.channel_coverage.items():
        if vendor not in required:
            continue
        provider = facts.fabrics.of(vendor)
        if problem := coverage_problem(coverage, provider):
            yield problem
        for index, clique in enumerate(workload.template.cliques):
            in_domain = any(
                requirement.vendor == vendor for requirement in domain_requirements.get(clique.name, ())
            )
            amount, pods = _amount(clique, provider), _pods(workload, clique)
            if in_domain and pods > 1 and 0 < amount < coverage.smallest:
                yield (
                    f"{_CLIQUES}[{index}]: a node has one channel, so these {pods} pods need {pods} nodes "
                    f"and use {amount} of at least {coverage.smallest} accelerators on each"
                )


def _amount(clique: CliqueTemplate, provider: FabricDomainProvider) -> int:
    """How many accelerators a pod requests."""
    resources = (container.resources for container in read_template(clique.spec.pod_spec).containers)
    return sum(provider.amount({**each.requests, **each.limits}) for each in resources)


def _pods(workload: Workload, clique: CliqueTemplate) -> int:
    groups = workload.template.pod_clique_scaling_groups
    members = next((group.replicas for group in groups if clique.name in group.clique_names), 1)
    return workload.spec.replicas * members * clique.spec.replicas
