"""Counts the pods of a set in its fabric domains, also those that do not exist: the nodes of a domain say
nothing about them."""

from __future__ import annotations

from collections.abc import Iterable

from grove.fabrics.domain_pods import DomainPodCount
from grove.fabrics.resolved import ResolvedDomain
from grove.plan.cliques.health import CliqueHealth


def count_domain_pods(cliques: Iterable[CliqueHealth]) -> tuple[DomainPodCount, ...]:
    """The pods of these cliques by domain."""
    return sum_of_counts(
        DomainPodCount(
            domain.provider.vendor,
            domain.name,
            view.wanted.replicas,
            min(view.count.scheduled, view.wanted.replicas),
        )
        for view in cliques
        for domain in view.wanted.fabric_domains
    )


def sum_of_counts(counts: Iterable[DomainPodCount]) -> tuple[DomainPodCount, ...]:
    """One count for each domain."""
    found: dict[tuple[str, str], DomainPodCount] = {}
    for each in counts:
        known = found.get((each.vendor, each.name))
        wanted, scheduled = (known.wanted, known.scheduled) if known is not None else (0, 0)
        found[each.vendor, each.name] = DomainPodCount(
            each.vendor, each.name, wanted + each.wanted, scheduled + each.scheduled
        )
    return tuple(found.values())


class PodCountsOfSet:
    """The pods of a set by domain."""

    def __init__(self, counts: Iterable[DomainPodCount] = ()) -> None:
        self._counts = {(each.vendor, each.name): each for each in sum_of_counts(counts)}

    def waiting(self, domain: ResolvedDomain) -> DomainPodCount | None:
        """The count of a domain some of whose pods have no node, or do not exist; None for others."""
        found = self._counts.get((domain.provider.vendor, domain.name))
        return found if found is not None and found.scheduled < found.wanted else None

    def exceeds_channels(self, domain: ResolvedDomain) -> DomainPodCount | None:
        """The count of a domain whose waiting pods cannot all get a node: each needs a channel of its own."""
        found = self.waiting(domain)
        return found if found is not None and 0 < (domain.channels or 0) < found.wanted else None

    def can_grow(self, domain: ResolvedDomain) -> bool:
        """Whether pods wait although there are channels for them."""
        found = self.waiting(domain)
        return found is not None and found.scheduled < min(found.wanted, domain.channels or found.wanted)
