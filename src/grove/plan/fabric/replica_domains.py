"""Decides for the pods of one replica which fabric domains they join, and whether the domains are usable yet.

A pod whose domain is missing or not usable is not created: it could not start. Only the cliques that need the
domain wait. Domains themselves are created and deleted in `fabric.planner`.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.error_codes import ErrorCode
from grove.api.meta import ObjectMeta
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.membership import DomainAttachment
from grove.fabrics.provider import Domain, DomainRequest, FabricDomainProvider
from grove.fabrics.requirements import DomainRequirement, domain_requirements
from grove.plan.desired.expand import Clique
from grove.plan.fabric.state import DomainState, domain_state, state_message, with_template_state
from grove.plan.model import UserError
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import child_reference


class ReplicaDomains:
    """Decides for the cliques of one replica."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._requirements = domain_requirements(snapshot.workload, snapshot.fabrics)

    def fabric_domains(self, template: str, group_replica: int) -> tuple[DomainAttachment, ...]:
        """The domain attachments of the pods of a clique, by the clique's name in the set."""
        requested = self._requirements.get(template)
        if not requested:
            return ()
        return tuple(self._fabric_domain(requirement, group_replica) for requirement in requested)

    def _fabric_domain(self, requirement: DomainRequirement, group_replica: int) -> DomainAttachment:
        provider = self._snapshot.fabrics.of(requirement.vendor)
        name = requirement.name(self._snapshot.index, group_replica)
        found = self._found(requirement.vendor, name)
        if (
            found is not None
            and domain_state(found, requirement, self._snapshot.workload) is not DomainState.CONFLICT
        ):
            return DomainAttachment(provider, requirement, name, provider.template_name(found))
        return DomainAttachment(
            provider, requirement, name, _future_template_name(provider, self._snapshot.workload, name)
        )

    def blocked(self, clique: Clique) -> bool:
        """Whether pods of the clique cannot be created yet."""
        return any(
            self._state(fabric_domain) is not DomainState.USABLE for fabric_domain in clique.fabric_domains
        )

    def errors(self, cliques: Iterable[Clique]) -> tuple[UserError, ...]:
        """Problems that only a user can solve."""
        workload = self._snapshot.workload
        return tuple(
            UserError(
                ErrorCode.SYNC_COMPUTE_DOMAIN, message, child_reference(workload, PodClique.KIND, clique.name)
            )
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
    """The template name of a domain that is not created yet."""
    body = provider.build_domain(DomainRequest(name, workload.metadata.namespace, {}, ()))
    return provider.template_name(Domain(ObjectMeta(name=name), body["spec"]))
