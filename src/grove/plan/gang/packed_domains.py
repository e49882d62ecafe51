"""The fabric domains of a gang whose pods go to one partition of the fabric."""

from __future__ import annotations

from grove.api.configuration.types import DomainPacking
from grove.plan.desired.expand import Clique
from grove.plan.placement.demand import FabricDomain, PackedDomain


class PackedDomains:
    """Collects domains. Each gets a number, in the order in which cliques first join them: equal gangs have
    equal numbers."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._numbers: dict[PackedDomain, int] = {}

    @property
    def domains(self) -> tuple[PackedDomain, ...]:
        """The domains, by their numbers."""
        return tuple(self._numbers)

    def numbers(self, clique: Clique) -> tuple[int, ...]:
        """The numbers of the domains that the pods of a clique join."""
        return tuple(
            self._numbers.setdefault(
                PackedDomain(
                    FabricDomain(self._namespace, each.name),
                    each.provider.partition_label,
                    each.packing is DomainPacking.REQUIRED,
                ),
                len(self._numbers),
            )
            for each in clique.fabric_domains
            if each.packing is not DomainPacking.OFF
        )
