"""Events for sets about the fabric domains that they use."""

from __future__ import annotations

from collections.abc import Sequence

from grove.api.event_reasons import EventReason
from grove.fabrics.provider import Domain
from grove.fabrics.resolved import DomainState
from grove.plan.fabric.model import DomainConsumer, DomainEvent, DomainSnapshot
from grove.plan.fabric.state import state_message


def foreign_domain_events(
    snapshot: DomainSnapshot, found: Domain, consumers: Sequence[DomainConsumer]
) -> tuple[DomainEvent, ...]:
    """Events about a domain that Grove does not manage: sets that name it may use it, and it is never
    written."""
    kind = snapshot.provider.api.name
    note = f"uses existing {kind} {snapshot.name}, which is not managed by Grove"
    referenced = EventReason.COMPUTE_DOMAIN_REFERENCED
    using = (
        DomainEvent(consumer.workload, referenced, note)
        for consumer in consumers
        if consumer.state is DomainState.USABLE
    )
    return (*using, *conflict_events(snapshot, found, consumers))


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


def conflict_events(
    snapshot: DomainSnapshot, found: Domain, consumers: Sequence[DomainConsumer]
) -> tuple[DomainEvent, ...]:
    """Warns that another object has the name of the domain or of its template."""
    provider, template = snapshot.provider, snapshot.provider.template_name(found)
    return tuple(
        DomainEvent(
            consumer.workload,
            EventReason.COMPUTE_DOMAIN_CONFLICT,
            state_message(consumer.state, provider, snapshot.name, template),
            warning=True,
        )
        for consumer in consumers
        if consumer.state in (DomainState.CONFLICT, DomainState.TEMPLATE_CONFLICT)
    )
