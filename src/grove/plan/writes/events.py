"""Builds the events of creates and deletes, which are emitted once the write has succeeded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from grove.api.event_reasons import EventReason, EventReporter
from grove.api.intents import Create, Delete, ObjectRef
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podgang import PodGang
from grove.plan.model import PlannedEvent

DeletesByIndex = Mapping[int | None, Sequence[Delete]]
"""The deletes of pods of a clique, by the index of the pod; at least one for each."""
_DELETED = {
    PodClique.KIND.name: EventReason.CLIQUE_DELETED,
    PodCliqueScalingGroup.KIND.name: EventReason.GROUP_DELETED,
    PodGang.KIND.name: EventReason.GANG_DELETED,
}


class UpdatedUnit(Struct, frozen=True):
    """What an update replaces at once: pods of a clique, or a replica of a group."""

    regarding: ObjectRef
    """The clique or group that is updated."""
    reporter: EventReporter
    what: str = ""
    """What the pods belong to, as part of a note; empty: the clique."""

    def joined(self, event: PlannedEvent) -> PlannedEvent:
        """The event of one replaced pod, emitted together with those of the others."""
        together = f"Created {{count}} pods{self.what} in place of outdated ones"
        return replace(event, regarding=self.regarding, reporter=self.reporter.value, together=together)


def deleted(regarding: ObjectRef, deletion: Delete, *, together: bool = False) -> PlannedEvent:
    """The event of a clique, group or gang that is deleted, on its set."""
    kind = deletion.target.kind
    note, joint = f"Deleted {kind} {deletion.target.name}", f"Deleted {{count}} {kind}s" if together else ""
    return PlannedEvent(regarding, _DELETED[kind], note, intent=deletion.id, together=joint)


def pod_events(
    creates: Mapping[int, Create], deletes: DeletesByIndex, unit: UpdatedUnit | None = None
) -> Iterator[PlannedEvent]:
    """The events of the pods of a clique that are created and deleted, by the index of the pod. A pod that is
    created in place of a deleted one has one event for both, if both writes succeed. Those that an update
    replaces with a `unit` have one event together."""
    for index, create in creates.items():
        predecessors = deletes.get(index)
        instead = f" in place of {predecessors[-1].target.name}" if predecessors else ""
        event = _pod_event(create, EventReason.POD_CREATED, f"Created pod {create.target.name}{instead}")
        yield unit.joined(event) if unit is not None and predecessors else event
    for pod_index, of_index in deletes.items():
        successor = creates.get(pod_index) if pod_index is not None else None
        yield from map(pod_deleted, of_index[:-1])
        yield pod_deleted(of_index[-1], successor)


def pod_deleted(deletion: Delete, successor: Create | None = None) -> PlannedEvent:
    """The event of a pod that is deleted. If its successor is created as well, the event of the successor
    says both."""
    event = _pod_event(deletion, EventReason.POD_DELETED, f"Deleted pod {deletion.target.name}")
    return replace(event, unless=successor.id) if successor is not None else event


def _pod_event(write: Create | Delete, reason: EventReason, note: str) -> PlannedEvent:
    """The event of the write of a pod, on its clique."""
    assert write.regarding is not None
    return PlannedEvent(write.regarding, reason, note, intent=write.id, reporter=EventReporter.CLIQUE.value)
