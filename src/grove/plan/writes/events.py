"""Builds the events of creates and deletes, which are emitted once the write has succeeded."""

from __future__ import annotations

from grove.api.event_reasons import EventReason, EventReporter
from grove.api.intents import Create, Delete, ObjectRef
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podgang import PodGang
from grove.plan.model import PlannedEvent

_DELETED = {
    PodClique.KIND.name: EventReason.CLIQUE_DELETED,
    PodCliqueScalingGroup.KIND.name: EventReason.GROUP_DELETED,
    PodGang.KIND.name: EventReason.GANG_DELETED,
}


def deleted(regarding: ObjectRef, deletion: Delete, *, together: bool = False) -> PlannedEvent:
    """The event of a clique, group or gang that is deleted, on its set."""
    kind = deletion.target.kind
    note = f"Deleted {kind} {deletion.target.name}"
    return PlannedEvent(regarding, _DELETED[kind], note, intent=deletion.id, together=together)


def pod_created(creation: Create, predecessor: Delete | None = None) -> PlannedEvent:
    """The event of a pod that is created, on its clique. If its predecessor is deleted in the same plan, that
    is part of the event."""
    assert creation.regarding is not None
    note = f"Created pod {creation.target.name}"
    if predecessor is not None:
        note += f" in place of {predecessor.target.name}"
    reporter = EventReporter.CLIQUE.value
    return PlannedEvent(
        creation.regarding, EventReason.POD_CREATED, note, intent=creation.id, reporter=reporter
    )


def pod_deleted(deletion: Delete, successor: Create | None = None) -> PlannedEvent:
    """The event of a pod that is deleted, on its clique. If its successor is created as well, the event of
    the successor says both."""
    assert deletion.regarding is not None
    return PlannedEvent(
        deletion.regarding,
        EventReason.POD_DELETED,
        f"Deleted pod {deletion.target.name}",
        intent=deletion.id,
        unless=successor.id if successor is not None else "",
        reporter=EventReporter.CLIQUE.value,
    )
