"""Which cliques of a replica wait for their fabric domains, and what their users must do.

A pod whose domain is missing or not usable, or whose claim template the driver has not created, is not
created: it could not start. A gang with such a pod is not begun: its other pods would hold nodes for nothing.
In a gang that exists, only the cliques that need the domain wait. Domains themselves are created and deleted
in `fabric.planner`.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.conditions import ComputeDomainsReason as Reason
from grove.api.error_codes import ErrorCode
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.resolved import DomainState, ResolvedDomain
from grove.plan.desired.expand import Clique, Gang
from grove.plan.fabric.problems import problems_of
from grove.plan.fabric.state import state_message
from grove.plan.model import UserError
from grove.plan.writes.builders import child_reference


def waits_for_domain(clique: Clique) -> bool:
    """Whether pods of the clique cannot be created yet."""
    return any(domain.state is not DomainState.USABLE for domain in clique.fabric_domains)


def domain_problem(gang: Gang, now: float) -> str:
    """Why pods of a gang wait for their domain, if that does not pass by itself; empty if they do not."""
    for clique in gang.cliques:
        for domain in clique.fabric_domains:
            if message := _message(domain):
                return message
            for problem in problems_of(domain, now):
                if problem.reason is not Reason.FABRIC_SPLIT:  # pods run in a split domain
                    return problem.message
    return ""


def domain_errors(workload: PodCliqueSet, cliques: Iterable[Clique]) -> tuple[UserError, ...]:
    """Problems that only a user can solve."""
    return tuple(
        UserError(
            ErrorCode.SYNC_COMPUTE_DOMAIN, message, child_reference(workload, PodClique.KIND, clique.name)
        )
        for clique in cliques
        for domain in clique.fabric_domains
        if (message := _message(domain))
    )


def _message(domain: ResolvedDomain) -> str:
    return state_message(domain.state, domain.provider, domain.name, domain.template, domain.found)
