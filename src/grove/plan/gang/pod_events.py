"""The events of the pods of one clique: created, deleted, and created in place of a deleted one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from grove.api.intents import Create, Delete
from grove.plan.model import PlannedEvent
from grove.plan.writes.events import pod_created, pod_deleted

DeletesByIndex = Mapping[int | None, Sequence[Delete]]
"""The deletes of pods of a clique, by the index of the pod."""


def pod_events(creates: Mapping[int, Create], deletes: DeletesByIndex) -> Iterator[PlannedEvent]:
    """The events of creates and deletes, each by the index of the pod."""
    for index, create in creates.items():
        yield pod_created(create, _last(deletes.get(index, ())))
    for pod_index, of_index in deletes.items():
        successor = creates.get(pod_index) if pod_index is not None else None
        for delete in of_index:
            yield pod_deleted(delete, successor if delete is _last(of_index) else None)


def _last(deletes: Sequence[Delete]) -> Delete | None:
    """The one whose name the event of the successor has."""
    return deletes[-1] if deletes else None
