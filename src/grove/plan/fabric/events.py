"""Events for sets about the fabric domains that they use."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from grove.api.event_reasons import EventReason
from grove.api.formats.name_list import name_list
from grove.api.intents import Create, Delete, Intent
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import Domain, Scope
from grove.fabrics.resolved import DomainState
from grove.plan.fabric.model import DomainConsumer, DomainSnapshot
from grove.plan.fabric.problems import split_problem
from grove.plan.fabric.state import state_message
from grove.plan.model import PlannedEvent
from grove.plan.writes.builders import reference


def domain_event(
    snapshot: DomainSnapshot,
    workload: PodCliqueSet,
    reason: EventReason,
    note: str,
    *,
    warning: bool = False,
    intent: str = "",
) -> PlannedEvent:
    """An event for a set. Without an intent it is emitted once for each object of the domain's name, although
    the numbers in its note may change."""
    identity = snapshot.found.metadata.uid if snapshot.found is not None else snapshot.name
    return PlannedEvent(
        reference(workload), reason.value, note, warning=warning, intent=intent, identity=identity
    )


def foreign_domain_events(
    snapshot: DomainSnapshot, found: Domain, consumers: Sequence[DomainConsumer]
) -> tuple[PlannedEvent, ...]:
    """Events about a domain that Grove does not manage: sets that name it may use it, and it is never
    written."""
    kind = snapshot.provider.api.name
    note = f"uses existing {kind} {snapshot.name}, which is not managed by Grove"
    using = (
        domain_event(snapshot, consumer.workload, EventReason.COMPUTE_DOMAIN_REFERENCED, note)
        for consumer in consumers
        if consumer.state in (DomainState.USABLE, DomainState.TEMPLATE_MISSING)
    )
    return (*using, *conflict_events(snapshot, found, consumers))


def split_fabric_events(
    snapshot: DomainSnapshot, found: Domain, consumers: Sequence[DomainConsumer]
) -> tuple[PlannedEvent, ...]:
    """Warns that the nodes of one domain are in several partitions, between which the fabric has no links."""
    problem = split_problem(snapshot.provider, found, snapshot.pods)
    if problem is None:
        return ()
    return warning_events(snapshot, consumers, EventReason.FABRIC_SPLIT, problem.message)


def joining_events(
    snapshot: DomainSnapshot, found: Domain, consumers: Sequence[DomainConsumer], intent: str
) -> tuple[PlannedEvent, ...]:
    """Events for sets that join a domain which others created, once it names them as its owners."""
    owners = {owner.uid for owner in found.metadata.owner_references}
    others = [
        consumer.workload.metadata.name for consumer in consumers if consumer.workload.metadata.uid in owners
    ]
    note = f"joined {snapshot.provider.api.name} {snapshot.name}, which is used by {name_list(others)}"
    return tuple(
        domain_event(snapshot, consumer.workload, EventReason.COMPUTE_DOMAIN_JOINED, note, intent=intent)
        for consumer in consumers
        if others and consumer.workload.metadata.uid not in owners
    )


def conflict_events(
    snapshot: DomainSnapshot, found: Domain, consumers: Sequence[DomainConsumer]
) -> tuple[PlannedEvent, ...]:
    """Warns that another object has the name of the domain or of its template."""
    provider, template = snapshot.provider, snapshot.provider.template_name(found)
    return tuple(
        domain_event(
            snapshot,
            consumer.workload,
            EventReason.COMPUTE_DOMAIN_CONFLICT,
            state_message(consumer.state, provider, snapshot.name, template, found),
            warning=True,
        )
        for consumer in consumers
        if consumer.state in (DomainState.CONFLICT, DomainState.TEMPLATE_CONFLICT)
    )


def warning_events(
    snapshot: DomainSnapshot, consumers: Sequence[DomainConsumer], reason: EventReason, note: str
) -> tuple[PlannedEvent, ...]:
    """A warning for each of the sets."""
    return tuple(
        domain_event(snapshot, consumer.workload, reason, note, warning=True) for consumer in consumers
    )


def failure_events(snapshot: DomainSnapshot, intent: Intent) -> tuple[PlannedEvent, ...]:
    """The events of a write of a domain that fails: on each set that requires it, or that no longer does if
    the domain cannot be deleted. They are emitted on each attempt, and attempts become rare by back-off."""
    kind, name = snapshot.provider.api.name, snapshot.name
    if intent.target.kind != kind:  # its pods report failed writes themselves
        return ()
    if isinstance(intent, Delete):
        reason, note = EventReason.COMPUTE_DOMAIN_DELETE_FAILED, f"Could not delete {kind} {name}"
        events = tuple(
            domain_event(snapshot, workload, reason, note, warning=True)
            for workload in snapshot.former_owners
        )
    elif isinstance(intent, Create):
        events = tuple(
            domain_event(
                snapshot,
                consumer.workload,
                EventReason.COMPUTE_DOMAIN_FAILED,
                f"Failed to create {kind} {_created_for(snapshot, consumer)}",
                warning=True,
            )
            for consumer in snapshot.consumers
        )
    else:
        return ()
    return tuple(replace(event, intent=intent.id, on_failure=True) for event in events)


def _created_for(snapshot: DomainSnapshot, consumer: DomainConsumer) -> str:
    shared = consumer.membership.requirement.scope is Scope.SHARED
    return snapshot.name if shared else f"for replica {consumer.membership.replicas[0]}"
