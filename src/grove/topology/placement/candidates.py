"""The domains that a gang as a whole may go to."""

from __future__ import annotations

from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Domain, Problem
from grove.topology.placement.units import PlacementUnit


def gang_domains(index: ClusterIndex, gang: PlacementUnit, problem: Problem) -> list[Domain]:
    """Domains of the required level, or the domain to stay in, without those that are excluded or that bound
    pods of the gang rule out. A gang without a pod to place is where it is."""
    if not gang.totals:
        return [problem.within]
    return [
        domain
        for domain in all_gang_domains(index, gang, problem)
        if gang.allows(domain) and not excluded_by(domain, problem)
    ]


def all_gang_domains(index: ClusterIndex, gang: PlacementUnit, problem: Problem) -> list[Domain]:
    within = problem.within
    if gang.required is None:
        return [] if gang.unknown_level else [within]
    if gang.required < len(within):
        return [within] if within[gang.required] else []
    return sorted(index.subdomains(within, gang.required))


def excluded_by(domain: Domain, problem: Problem) -> str:
    """Why a domain, or one around it, is excluded; empty if it is not."""
    around = (domain[:length] for length in range(len(domain), -1, -1))
    return next((problem.excluded[each] for each in around if each in problem.excluded), "")
