"""Kubernetes Events of a pass: those in the plan whose writes succeeded, and one for each write that failed.

The plan says which events there are and on which objects. This module decides which of them are emitted: it
reads the plan, its outcome and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from grove import timing
from grove.api.event_reasons import EventReason, EventReporter
from grove.api.intents import Create, DeferredValue, Delete, EventRecord, ObjectRef, Status
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podgang import PodGang
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.plan.model import Plan, PlannedEvent, StatusUpdate

_CREATE_FAILED = {
    "Pod": EventReason.POD_CREATE_FAILED,
    PodClique.KIND.name: EventReason.CLIQUE_WRITE_FAILED,
    PodCliqueScalingGroup.KIND.name: EventReason.GROUP_WRITE_FAILED,
    PodGang.KIND.name: EventReason.GANG_WRITE_FAILED,
}
_DELETE_FAILED = {
    "Pod": EventReason.POD_DELETE_FAILED,
    PodClique.KIND.name: EventReason.CLIQUE_DELETE_FAILED,
    PodCliqueScalingGroup.KIND.name: EventReason.GROUP_DELETE_FAILED,
    PodGang.KIND.name: EventReason.GANG_DELETE_FAILED,
}
_REPORTERS = {
    PodClique.KIND.name: EventReporter.CLIQUE,
    PodCliqueScalingGroup.KIND.name: EventReporter.GROUP,
}

EventIdentity = tuple[ObjectRef, str, str]
"""What distinguishes lasting events: object, reason, and the rest."""


def lasting_events(plan: Plan) -> dict[EventIdentity, PlannedEvent]:
    """The events of a plan that describe a state. Those that the previous plan of the key does not have are
    emitted."""
    return {
        (event.regarding, event.reason, event.identity or event.note): event
        for event in plan.events
        if not event.intent
    }


def events_of_writes(plan: Plan, outcome: Outcome, about: ObjectRef | None) -> Iterator[EventRecord]:
    """The events of writes that succeeded or failed. `about` is the object of the key."""
    done = {result.intent.id: result for result in outcome.results if result.state is IntentState.DONE}
    happened = [
        event
        for event in plan.events
        if event.intent in done and event.unless not in done and not event.on_failure
    ]
    failures = chain(_planned_failures(plan, outcome), _failures(outcome, about))
    resolved: dict[ObjectRef, ObjectRef] = {}
    for event in chain(_joined(happened, done), failures):
        if event.regarding not in resolved:  # once for all pods of a clique
            resolved[event.regarding] = _resolved(event.regarding, outcome, about)
        yield event_record(replace(event, regarding=resolved[event.regarding]))


def events_of_statuses(status_updates: Iterable[StatusUpdate], outcome: Outcome) -> Iterator[EventRecord]:
    """The events of statuses that were written. A status is written on the resourceVersion that was read, so
    of two leaders only one emits them."""
    done = {
        result.intent.target
        for result in outcome.results
        if result.state is IntentState.DONE and isinstance(result.intent, Status)
    }
    for status_update in status_updates:
        if status_update.target in done:
            yield from map(event_record, status_update.events)


def event_record(event: PlannedEvent) -> EventRecord:
    """The event as it is sent."""
    return EventRecord(
        event.regarding,
        event.reason,
        event.note,
        action="Sync",
        warning=event.warning,
        reporter=event.reporter,
    )


def _joined(events: Sequence[PlannedEvent], done: dict[str, Result]) -> Iterator[PlannedEvent]:
    """The events, with one for all writes that are reported together."""
    together: dict[tuple[ObjectRef, str, str], list[PlannedEvent]] = {}
    for event in events:
        if event.together:
            together.setdefault((event.regarding, event.reason, event.together), []).append(event)
        else:
            yield event
    for same in together.values():
        yield same[0] if len(same) == 1 else replace(same[0], note=_joint_note(same, done))


def _joint_note(events: Sequence[PlannedEvent], done: dict[str, Result]) -> str:
    names = [done[event.intent].intent.target.name for event in events]
    rest = ", ..." if len(names) > timing.WRITES_NAMED else ""
    what = events[0].together.replace("{count}", str(len(names)))
    return f"{what}: {', '.join(names[: timing.WRITES_NAMED])}{rest}"


def _planned_failures(plan: Plan, outcome: Outcome) -> Iterator[PlannedEvent]:
    """The events that the plan has for writes that failed."""
    planned = [event for event in plan.events if event.on_failure]
    if not planned:
        return
    errors = {
        result.intent.id: result.error for result in outcome.results if result.state is IntentState.FAILED
    }
    for event in planned:
        if event.intent in errors:
            yield replace(event, note=f"{event.note}: {errors[event.intent]}")


def _failures(outcome: Outcome, about: ObjectRef | None) -> Iterator[PlannedEvent]:
    """The events of writes that failed, each on the object that reports it."""
    return (event for result in outcome.results if (event := _failure(result, about)) is not None)


def _failure(result: Result, about: ObjectRef | None) -> PlannedEvent | None:
    intent = result.intent
    if result.state is not IntentState.FAILED or not isinstance(intent, Create | Delete):
        return None
    kind, creates = intent.target.kind, isinstance(intent, Create)
    reason = (_CREATE_FAILED if creates else _DELETE_FAILED).get(kind)
    regarding = intent.regarding or about
    if reason is None or regarding is None:
        return None
    what = f"create {kind}" if creates else f"delete {kind} {intent.target.name}"
    reporter = _REPORTERS.get(regarding.kind, EventReporter.SET).value
    return PlannedEvent(
        regarding, reason, f"Could not {what}: {result.error}", warning=True, reporter=reporter
    )


def _resolved(regarding: ObjectRef, outcome: Outcome, about: ObjectRef | None) -> ObjectRef:
    """The object with its UID, which was not known yet if the same plan created it; the object of the key if
    the plan could not create it."""
    if not isinstance(regarding.uid, DeferredValue):
        return regarding
    try:
        return replace(regarding, uid=outcome.resolve(regarding.uid))
    except KeyError:
        return about or replace(regarding, uid="")
