"""The fabric domains of one replica, seen by its pods: which ones they join, and whether they may yet.

A pod whose domain is not there, or not to be used, is not made: it could not start. Only the cliques that
need the domain are held. Domains themselves are made and removed elsewhere (see `domains`).
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.error_codes import ErrorCode
from grove.api.meta import ObjectMeta
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.membership import DomainAttachment
from grove.fabrics.provider import Domain, DomainRequest, FabricDomainProvider
from grove.fabrics.requirements import DomainRequirement, domain_requirements
from grove.plan.desired.expand import Clique
from grove.plan.fabric.state import DomainState, domain_state, state_message, with_template_state
from grove.plan.model import UserError
from grove.plan.snapshot import Snapshot


class ReplicaDomains:
    """Decides for the cliques of one replica."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._demands = domain_requirements(snapshot.workload, snapshot.fabrics)

    def fabric_domains(self, template: str, group_replica: int) -> tuple[DomainAttachment, ...]:
        """The places in domains that the pods of a clique take, by the clique's name in the set."""
        requested = self._demands.get(template)
        if not requested:
            return ()
        return tuple(self._fabric_domain(demand, group_replica) for demand in requested)

    def _fabric_domain(self, demand: DomainRequirement, group_replica: int) -> DomainAttachment:
        provider = self._snapshot.fabrics.of(demand.vendor)
        name = demand.name(self._snapshot.index, group_replica)
        found = self._found(demand.vendor, name)
        if (
            found is not None
            and domain_state(found, demand, self._snapshot.workload) is not DomainState.CONFLICT
        ):
            return DomainAttachment(provider, demand, name, provider.template_name(found))
        return DomainAttachment(
            provider, demand, name, _future_template_name(provider, self._snapshot.workload, name)
        )

    def blocked(self, clique: Clique) -> bool:
        """Whether pods of the clique cannot be made yet."""
        return any(
            self._state(fabric_domain) is not DomainState.USABLE for fabric_domain in clique.fabric_domains
        )

    def errors(self, cliques: Iterable[Clique]) -> tuple[UserError, ...]:
        """What only a person can mend."""
        return tuple(
            UserError(clique.name, ErrorCode.SYNC_COMPUTE_DOMAIN.value, message)
            for clique in cliques
            for fabric_domain in clique.fabric_domains
            if (
                message := state_message(
                    self._state(fabric_domain),
                    fabric_domain.provider,
                    fabric_domain.domain,
                    fabric_domain.template,
                )
            )
        )

    def _state(self, fabric_domain: DomainAttachment) -> DomainState:
        if self._snapshot.domains.get(fabric_domain.provider.vendor) is None:
            return DomainState.NOT_SERVED
        found = self._found(fabric_domain.provider.vendor, fabric_domain.domain)
        of_template = self._snapshot.templates.get(
            (fabric_domain.provider.vendor, fabric_domain.domain), DomainState.USABLE
        )
        return with_template_state(
            domain_state(found, fabric_domain.requirement, self._snapshot.workload), of_template
        )

    def _found(self, vendor: str, name: str) -> Domain | None:
        return (self._snapshot.domains.get(vendor) or {}).get(name)


def _future_template_name(provider: FabricDomainProvider, workload: PodCliqueSet, name: str) -> str:
    """What a domain that is yet to be made will call its template."""
    body = provider.build_domain(DomainRequest(name, workload.metadata.namespace, {}, ()))
    return provider.template_name(Domain(ObjectMeta(name=name), body["spec"]))
