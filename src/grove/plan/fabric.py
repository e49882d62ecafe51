"""The fabric domains of one replica, seen by its pods: which ones they join, and whether they may yet.

A pod whose domain is not there, or not to be used, is not made: it could not start. Only the cliques that
need the domain are held. Domains themselves are made and removed elsewhere (see `domains`).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from grove.api import labels
from grove.api.errors import ErrorCode
from grove.api.meta import ObjectMeta
from grove.api.sets import PodCliqueSet
from grove.fabrics.places import Seat
from grove.fabrics.provider import Domain, DomainRequest, FabricDomainProvider
from grove.fabrics.resolve import Demand, Mode, demands
from grove.plan.expand import Clique
from grove.plan.model import Complaint
from grove.plan.pods import controller_uid
from grove.plan.snapshot import Snapshot


class State(StrEnum):
    """What a domain is to a set that needs it."""

    USABLE = "usable"
    MISSING = "missing"
    NOT_YET = "not yet ours"
    TERMINATING = "terminating"
    CONFLICT = "conflict"
    UNSERVED = "not served"


def is_managed(domain: Domain) -> bool:
    """Whether a domain was made by us, whoever for."""
    carried = domain.metadata.labels
    return (
        carried.get(labels.MANAGED_BY) == labels.OPERATOR
        and carried.get(labels.COMPONENT) == labels.Component.COMPUTE_DOMAIN
    )


def mode_of(domain: Domain) -> str:
    """For whom it was made: one set's replica, or whoever names it. Upstream's say nothing."""
    return domain.metadata.labels.get(labels.COMPUTE_DOMAIN_MODE, Mode.AUTO.value)


def state_of(domain: Domain | None, demand: Demand, workload: PodCliqueSet) -> State:
    """What a domain, or its absence, is to a set."""
    if domain is None:
        return State.MISSING
    meta, uid = domain.metadata, workload.metadata.uid
    if demand.mode is Mode.AUTO:
        return _own(domain, workload)
    if is_managed(domain) and mode_of(domain) != Mode.EXPLICIT:
        return State.CONFLICT
    if meta.deletion_timestamp is not None:
        return State.TERMINATING
    if not is_managed(domain) or any(owner.uid == uid for owner in meta.owner_references):
        return State.USABLE
    return State.NOT_YET


def _own(domain: Domain, workload: PodCliqueSet) -> State:
    """A domain that is for one set alone."""
    meta = domain.metadata
    if is_managed(domain) and mode_of(domain) == Mode.AUTO:
        if (controller := controller_uid(meta)) == workload.metadata.uid:
            return State.USABLE if meta.deletion_timestamp is None else State.TERMINATING
        if not controller and meta.labels.get(labels.PART_OF) == workload.metadata.name:
            return State.NOT_YET if meta.deletion_timestamp is None else State.TERMINATING
    return State.CONFLICT if meta.deletion_timestamp is None else State.TERMINATING


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
            if (words := trouble(self._state(seat), seat.provider, seat.domain))
        )

    def _state(self, seat: Seat) -> State:
        if self._snapshot.domains.get(seat.provider.vendor) is None:
            return State.UNSERVED
        return state_of(self._found(seat.provider.vendor, seat.domain), seat.demand, self._snapshot.workload)

    def _found(self, vendor: str, name: str) -> Domain | None:
        return (self._snapshot.domains.get(vendor) or {}).get(name)


def trouble(state: State, provider: FabricDomainProvider, name: str) -> str:
    """What only a person can mend about a domain; empty if it will come by itself."""
    kind = provider.api.name
    if state is State.UNSERVED:
        return f"pods wait for {kind} {name}: {provider.api.crd_name} is not served: {provider.advice}"
    if state is State.TERMINATING:
        return (
            f"{kind} {name} is being deleted while it is needed, and goes when nobody needs it: new pods "
            "wait; scale in past the replica and out again, or delete the PodCliqueSet"
        )
    if state is State.CONFLICT:
        return f"{kind} {name} belongs to somebody else: delete it or rename the workload"
    return ""


def _template_to_be(provider: FabricDomainProvider, workload: PodCliqueSet, name: str) -> str:
    """What a domain that is yet to be made will call its template."""
    body = provider.build_domain(DomainRequest(name, workload.metadata.namespace, {}, ()))
    return provider.template_name(Domain(ObjectMeta(name=name), body["spec"]))
