"""Events for sets about the fabric domains that they use."""

from __future__ import annotations

from collections.abc import Sequence

from grove.api.event_reasons import EventReason
from grove.fabrics.provider import Domain
from grove.plan.fabric.model import DomainConsumer, DomainEvent, DomainSnapshot
from grove.plan.fabric.state import DomainState, domain_state, state_message, with_template_state


def foreign_domain_events(
    snapshot: DomainSnapshot, consumers: Sequence[DomainConsumer]
) -> tuple[DomainEvent, ...]:
    """Events about a domain that Grove does not manage: sets that name it may use it, and it is never
    written."""
    kind = snapshot.provider.api.name
    note = f"uses existing {kind} {snapshot.name}, which is not managed by Grove"
    referenced = EventReason.COMPUTE_DOMAIN_REFERENCED
    using = (
        DomainEvent(consumer.workload, referenced, note)
        for consumer in consumers
        if _state(snapshot, consumer) is DomainState.USABLE
    )
    return (*using, *conflict_events(snapshot, consumers))


def split_fabric_events(
    snapshot: DomainSnapshot, found: Domain, consumers: Sequence[DomainConsumer]
) -> tuple[DomainEvent, ...]:
    """Warns that the nodes of one domain are in several partitions, between which the fabric has no links."""
    partitions = snapshot.provider.observe(found).partitions
    if len(partitions) < 2:
        return ()
    message = (
        f"{snapshot.provider.api.name} {snapshot.name} is split over {len(partitions)} partitions "
        f"({', '.join(partitions)}): a topology constraint keeps its pods in one"
    )
    return tuple(
        DomainEvent(consumer.workload, EventReason.FABRIC_SPLIT, message, warning=True)
        for consumer in consumers
    )


def conflict_events(snapshot: DomainSnapshot, consumers: Sequence[DomainConsumer]) -> tuple[DomainEvent, ...]:
    """Warns that another object has the name of the domain or of its template."""
    found = [(consumer, _state(snapshot, consumer)) for consumer in consumers]
    template = snapshot.template.name if snapshot.template is not None else ""
    return tuple(
        DomainEvent(
            consumer.workload,
            EventReason.COMPUTE_DOMAIN_CONFLICT,
            state_message(state, snapshot.provider, snapshot.name, template),
            warning=True,
        )
        for consumer, state in found
        if state in (DomainState.CONFLICT, DomainState.TEMPLATE_CONFLICT)
    )


def _state(snapshot: DomainSnapshot, consumer: DomainConsumer) -> DomainState:
    return with_template_state(
        domain_state(snapshot.found, consumer.membership.requirement, consumer.workload),
        snapshot.template_state,
    )
