"""Resolves which fabric domains a set requires, and in what state each of them is.

    annotations ─► requirements of cliques ─► names of domains ─► ResolvedDomain
                   `fabrics.requirements`     `fabrics.membership`, by the counts of replicas and groups

The plan of a replica, the status of a set and the plan of the domain itself read the result; none of them
computes a state again.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from grove.api.configuration.types import DomainPacking
from grove.api.meta import ObjectMeta
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.domain_pods import NO_PODS, DomainPods
from grove.fabrics.membership import DomainMembership, GroupCount, Members, memberships
from grove.fabrics.packing import packing_of
from grove.fabrics.provider import Domain, DomainRequest, FabricDomainProvider, Scope
from grove.fabrics.registry import Providers
from grove.fabrics.requirements import DomainRequirement, DomainRequirements
from grove.fabrics.resolved import DomainState, ReplicaDomains, ResolvedDomain
from grove.plan.fabric.state import domain_state


class ObservedDomain(Struct, frozen=True):
    """What exists under the name of a domain."""

    served: bool = True
    """Whether the vendor's kind is served, and its domains are listed."""
    outdated: bool = False
    """If not: whether its CRD exists and serves other versions."""
    found: Domain | None = None
    template: ObjectMeta | None = None
    """The ResourceClaimTemplate with the name of its template, created by the driver or by others."""
    templates_listed: bool = False
    """Whether ResourceClaimTemplates are listed: without one, pods wait for it."""
    channels: int | None = None
    pods: DomainPods = NO_PODS


Observe = Callable[[FabricDomainProvider, str], ObservedDomain]
"""What exists, by the provider and the name of a domain."""


def resolve(
    workload: PodCliqueSet,
    provider: FabricDomainProvider,
    name: str,
    membership: DomainMembership,
    observed: ObservedDomain,
    packing: DomainPacking = DomainPacking.OFF,
) -> ResolvedDomain:
    """A domain that a set requires, with its state for the set. `packing`: for a set that does not say it."""
    found, state = observed.found, DomainState.OUTDATED if observed.outdated else DomainState.NOT_SERVED
    if observed.served:
        state = domain_state(provider, found, observed.template, membership.requirement, workload)
        if state is DomainState.USABLE and observed.templates_listed and observed.template is None:
            state = DomainState.TEMPLATE_MISSING
    if found is not None and state is not DomainState.CONFLICT:
        template = provider.template_name(found)
    else:
        template = _future_template_name(provider, workload, name)
    packed = packing_of(workload.metadata.annotations, packing)
    return ResolvedDomain(
        provider,
        name,
        membership,
        state,
        template,
        found,
        observed.channels,
        observed.pods,
        packing=packed if provider.partition_label else DomainPacking.OFF,
    )


def resolve_replica(
    workload: PodCliqueSet,
    requirements: DomainRequirements,
    providers: Providers,
    replica: int,
    members: Members,
    observe: Observe,
) -> ReplicaDomains:
    """The domains that the pods of one replica join. `members`: the replicas of its groups."""
    resolved: dict[tuple[DomainRequirement, str], ResolvedDomain] = {}

    def domain_of(requirement: DomainRequirement, group_replica: int) -> ResolvedDomain:
        name = requirement.name(replica, group_replica)
        if (requirement, name) not in resolved:
            provider = providers.of(requirement.vendor)
            membership = DomainMembership(requirement, (replica,))
            observed = observe(provider, name)
            resolved[requirement, name] = resolve(
                workload, provider, name, membership, observed, providers.packing
            )
        return resolved[requirement, name]

    def domain_without_group(requirement: DomainRequirement) -> ResolvedDomain:
        """The domain of a clique that is in no group: admission refuses such a set, unless it was off."""
        found = domain_of(requirement, 0)
        no_group = requirement.scope is Scope.GROUP_REPLICA
        return replace(found, state=DomainState.NO_GROUP, found=None) if no_group else found

    groups = {
        clique: group.name
        for group in workload.spec.template.pod_clique_scaling_groups
        for clique in group.clique_names
    }
    return {
        clique: {
            member: tuple(domain_of(requirement, member) for requirement in required)
            for member in members(groups[clique])
        }
        if clique in groups
        else {0: tuple(map(domain_without_group, required))}
        for clique, required in requirements.items()
    }


def resolve_set(
    workload: PodCliqueSet, providers: Providers, count: GroupCount, observe: Observe
) -> tuple[ResolvedDomain, ...]:
    """All domains of a set, for its status. For a set within the limit on its pods."""
    return tuple(
        resolve(workload, provider, name, membership, observe(provider, name), providers.packing)
        for (vendor, name), membership in memberships(workload, providers, count).items()
        for provider in (providers.of(vendor),)
    )


def _future_template_name(provider: FabricDomainProvider, workload: PodCliqueSet, name: str) -> str:
    """The template name of a domain that is not created yet."""
    body = provider.build_domain(DomainRequest(name, workload.metadata.namespace, {}, ()))
    return provider.template_name(Domain(ObjectMeta(name=name), body["spec"]))
