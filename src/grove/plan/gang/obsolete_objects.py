"""Deletes the scheduler objects of a replica's gangs that no pod needs any more.

A gang may have several: where an object is immutable, another level or minimum needs another object, and the
pods of the former one keep it. Kubernetes keeps a PodGroup that pods name until they are gone, so a pod that
is not in the cache yet loses nothing.
"""

from __future__ import annotations

from msgspec.structs import replace

from grove import timing
from grove.api.intents import Delete
from grove.api.types.pod import Pod
from grove.plan.timestamps import earliest, timestamp
from grove.plan.writes.builders import delete_of_kind
from grove.schedulers.backend import ForeignKind, GangRequest, SchedulerBackend, SchedulerObject


class ObsoleteObjects:
    """Collects such objects while gangs are planned. `kind` is the kind of all of them, `pods` are those of
    the replica, in any state."""

    def __init__(self, kind: ForeignKind | None, pods: tuple[Pod, ...]) -> None:
        self._kind, self._pods = kind, pods
        self._obsolete: list[SchedulerObject] = []
        self._retried: list[SchedulerObject] = []

    def collect(self, backend: SchedulerBackend, request: GangRequest) -> None:
        """Add those of a gang whose current object the request names."""
        if request.objects.keys() - {request.name}:
            names = backend.obsolete_objects(replace(request, pods=self._pods))
            self._obsolete += (request.objects[name] for name in names)

    def create_again(self, found: SchedulerObject) -> None:
        """Delete an object after a pause, so that it is created again: no event reports that the API server
        would store all of it now."""
        self._retried.append(found)

    def plan_deletes(self, now: float) -> tuple[list[Delete], float | None]:
        """The deletes of exactly these objects, and when there may be more."""
        if self._kind is None:
            return [], None
        retries = [(_retry_at(each), each) for each in self._retried]
        due = (each for time, each in retries if time <= now)
        deletes = [
            delete_of_kind(self._kind.api_version, self._kind.name, each)
            for each in (*self._obsolete, *due)
            if each.metadata.deletion_timestamp is None
        ]
        return deletes, earliest(*(time for time, _ in retries if time > now))


def _retry_at(found: SchedulerObject) -> float:
    return timestamp(found.metadata.creation_timestamp) + timing.DROPPED_CONSTRAINTS_RETRY
