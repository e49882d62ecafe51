"""Which cliques of a replica wait for their fabric domains, and what their users must do.

A pod whose domain is missing or not usable is not created: it could not start. Only the cliques that need the
domain wait. Domains themselves are created and deleted in `fabric.planner`.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.error_codes import ErrorCode
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.resolved import DomainState
from grove.plan.desired.expand import Clique
from grove.plan.fabric.state import state_message
from grove.plan.model import UserError
from grove.plan.writes.builders import child_reference


def waits_for_domain(clique: Clique) -> bool:
    """Whether pods of the clique cannot be created yet."""
    return any(domain.state is not DomainState.USABLE for domain in clique.fabric_domains)


def domain_errors(workload: PodCliqueSet, cliques: Iterable[Clique]) -> tuple[UserError, ...]:
    """Problems that only a user can solve."""
    return tuple(
        UserError(
            ErrorCode.SYNC_COMPUTE_DOMAIN, message, child_reference(workload, PodClique.KIND, clique.name)
        )
        for clique in cliques
        for domain in clique.fabric_domains
        if (message := state_message(domain.state, domain.provider, domain.name, domain.template))
    )
