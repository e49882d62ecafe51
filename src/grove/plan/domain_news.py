"""What sets are told about the fabric domains that they need."""

from __future__ import annotations

from collections.abc import Sequence

from grove.api.events import EventReason
from grove.fabrics.provider import Domain
from grove.plan.domain_model import DomainSnapshot, Remark, User
from grove.plan.domain_states import State, joined, state_of, trouble


def about_foreign(snapshot: DomainSnapshot, users: Sequence[User]) -> tuple[Remark, ...]:
    """A domain that somebody else made: who names it may use it, and nobody touches it."""
    kind = snapshot.provider.api.name
    note = f"uses existing {kind} {snapshot.name}, which is not managed by Grove"
    referenced = EventReason.COMPUTE_DOMAIN_REFERENCED
    using = (
        Remark(user.workload, referenced, note) for user in users if _state(snapshot, user) is State.USABLE
    )
    return (*using, *conflicts(snapshot, users))


def split(snapshot: DomainSnapshot, found: Domain, users: Sequence[User]) -> tuple[Remark, ...]:
    """Nodes of one domain in several partitions do not reach each other by the fabric."""
    partitions = snapshot.provider.observe(found).partitions
    if len(partitions) < 2:
        return ()
    words = (
        f"{snapshot.provider.api.name} {snapshot.name} is split over {len(partitions)} partitions "
        f"({', '.join(partitions)}): a topology constraint keeps its pods in one"
    )
    return tuple(Remark(user.workload, EventReason.FABRIC_SPLIT, words, warning=True) for user in users)


def conflicts(snapshot: DomainSnapshot, users: Sequence[User]) -> tuple[Remark, ...]:
    """The name of the domain, or that of its template, is taken."""
    found = [(user, _state(snapshot, user)) for user in users]
    template = snapshot.template.name if snapshot.template is not None else ""
    return tuple(
        Remark(
            user.workload,
            EventReason.COMPUTE_DOMAIN_CONFLICT,
            trouble(state, snapshot.provider, snapshot.name, template),
            warning=True,
        )
        for user, state in found
        if state in (State.CONFLICT, State.TEMPLATE_TAKEN)
    )


def _state(snapshot: DomainSnapshot, user: User) -> State:
    return joined(state_of(snapshot.found, user.stay.demand, user.workload), snapshot.template_state)
