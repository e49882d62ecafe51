"""Resolves which fabric domains a set requires, and in what state each of them is.

    annotations ─► requirements of cliques ─► names of domains ─► ResolvedDomain
                   `fabrics.requirements`     `fabrics.membership`, by the counts of replicas and groups

The plan of a replica, the status of a set and the plan of the domain itself read the result; none of them
computes a state again.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.membership import DomainMembership, GroupCount, Members, memberships
from grove.fabrics.provider import Domain, DomainRequest, FabricDomainProvider
from grove.fabrics.registry import Providers
from grove.fabrics.requirements import DomainRequirement, DomainRequirements
from grove.fabrics.resolved import DomainState, ReplicaDomains, ResolvedDomain
from grove.plan.fabric.state import domain_state


class ObservedDomain(Struct, frozen=True):
    """What exists under the name of a domain."""

    served: bool = True
    """Whether the vendor's kind is served, and its domains are listed."""
    found: Domain | None = None
    template: ObjectMeta | None = None
    """The ResourceClaimTemplate with the name of its template, created by the driver or by others."""
    channels: int | None = None
    nodes: frozenset[str] = frozenset()


Observe = Callable[[FabricDomainProvider, str], ObservedDomain]
"""What exists, by the provider and the name of a domain."""


def resolve(
    workload: PodCliqueSet,
    provider: FabricDomainProvider,
    name: str,
    membership: DomainMembership,
    observed: ObservedDomain,
) -> ResolvedDomain:
    """A domain that a set requires, with its state for the set."""
    found, state = observed.found, DomainState.NOT_SERVED
    if observed.served:
        state = domain_state(provider, found, observed.template, membership.requirement, workload)
    if found is not None and state is not DomainState.CONFLICT:
        template = provider.template_name(found)
    else:
        template = _future_template_name(provider, workload, name)
    return ResolvedDomain(
        provider, name, membership, state, template, found, observed.channels, observed.nodes
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
            resolved[requirement, name] = resolve(workload, provider, name, membership, observed)
        return resolved[requirement, name]

    groups = {
        clique: group.name
        for group in workload.spec.template.pod_clique_scaling_groups
        for clique in group.clique_names
    }
    return {
        clique: {
            member: tuple(domain_of(requirement, member) for requirement in required)
            for member in (members(groups[clique]) if clique in groups else (0,))
        }
        for clique, required in requirements.items()
    }


def resolve_set(
    workload: PodCliqueSet, providers: Providers, count: GroupCount, observe: Observe
) -> tuple[ResolvedDomain, ...]:
    """All domains of a set, for its status. For a set within the limit on its pods."""
    return tuple(
        resolve(workload, provider, name, membership, observe(provider, name))
        for (vendor, name), membership in memberships(workload, providers, count).items()
        for provider in (providers.of(vendor),)
    )


def _future_template_name(provider: FabricDomainProvider, workload: PodCliqueSet, name: str) -> str:
    """The template name of a domain that is not created yet."""
    body = provider.build_domain(DomainRequest(name, workload.metadata.namespace, {}, ()))
    return provider.template_name(Domain(ObjectMeta(name=name), body["spec"]))
