"""The fabric domains of one replica, seen by its pods: which ones they join, and whether they may yet.

A pod whose domain is not there, or not to be used, is not made: it could not start. Only the cliques that
need the domain are held. Domains themselves are made and removed elsewhere (see `domains`).
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.errors import ErrorCode
from grove.api.meta import ObjectMeta
from grove.api.sets import PodCliqueSet
from grove.fabrics.places import Seat
from grove.fabrics.provider import Domain, DomainRequest, FabricDomainProvider
from grove.fabrics.resolve import Demand, demands
from grove.plan.domain_states import State, joined, state_of, trouble
from grove.plan.expand import Clique
from grove.plan.model import Complaint
from grove.plan.snapshot import Snapshot


class Fabric:
    """Decides for the cliques of one replica."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._demands = demands(snapshot.workload, snapshot.fabrics)

    def seats(self, template: str, group_replica: int) -> tuple[Seat, ...]:
        """The places in domains that the pods of a clique take, by the clique's name in the set."""
        asked = self._demands.get(template)
        if not asked:
            return ()
        return tuple(self._seat(demand, group_replica) for demand in asked)

    def _seat(self, demand: Demand, group_replica: int) -> Seat:
        provider = self._snapshot.fabrics.of(demand.vendor)
        name = demand.name(self._snapshot.index, group_replica)
        found = self._found(demand.vendor, name)
        if found is not None and state_of(found, demand, self._snapshot.workload) is not State.CONFLICT:
            return Seat(provider, demand, name, provider.template_name(found))
        return Seat(provider, demand, name, _template_to_be(provider, self._snapshot.workload, name))

    def held(self, clique: Clique) -> bool:
        """Whether pods of the clique cannot be made yet."""
        return any(self._state(seat) is not State.USABLE for seat in clique.seats)

    def complaints(self, cliques: Iterable[Clique]) -> tuple[Complaint, ...]:
        """What only a person can mend."""
        return tuple(
            Complaint(clique.name, ErrorCode.SYNC_COMPUTE_DOMAIN.value, words)
            for clique in cliques
            for seat in clique.seats
            if (words := trouble(self._state(seat), seat.provider, seat.domain, seat.template))
        )

    def _state(self, seat: Seat) -> State:
        if self._snapshot.domains.get(seat.provider.vendor) is None:
            return State.UNSERVED
        found = self._found(seat.provider.vendor, seat.domain)
        of_template = self._snapshot.templates.get((seat.provider.vendor, seat.domain), State.USABLE)
        return joined(state_of(found, seat.demand, self._snapshot.workload), of_template)

    def _found(self, vendor: str, name: str) -> Domain | None:
        return (self._snapshot.domains.get(vendor) or {}).get(name)


def _template_to_be(provider: FabricDomainProvider, workload: PodCliqueSet, name: str) -> str:
    """What a domain that is yet to be made will call its template."""
    body = provider.build_domain(DomainRequest(name, workload.metadata.namespace, {}, ()))
    return provider.template_name(Domain(ObjectMeta(name=name), body["spec"]))
