"""Tracks replicas that are to be deleted: those above `spec.replicas`, and those of a deleted set.

The plan of the set deletes them together: the lower `spec.replicas` is verified once for all of them, and
objects without GPUs are deleted after the pods of all of them. The tracker knows which replicas these are,
and when their set has something to do: it is not enqueued for each pod.
"""

from __future__ import annotations

from collections.abc import Iterator

from grove.operator.keys import ReplicaKey, SetKey, parent_of
from grove.operator.observers.workload import Observer
from grove.plan.scale_in import deletion_requested, has_objects, has_pods
from grove.plan.snapshot import Snapshot


class ScaleInTracker:
    """Remembers which replicas of each set are surplus, and which of them still have pods."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._surplus: dict[SetKey, set[int]] = {}
        self._waiting: dict[SetKey, tuple[str, set[int]]] = {}
        """The UID of the set (a new set may have its name), and its deleted replicas that still have pods."""

    def record(self, key: ReplicaKey, snapshot: Snapshot) -> bool:
        """Store the state of a replica that is to be deleted. Returns whether its set must act now."""
        parent, deleting = parent_of(key), snapshot.workload.metadata.deletion_timestamp is not None
        waiting = self._waiting_of(parent, snapshot.workload.metadata.uid)
        if has_pods(snapshot):
            waiting.add(key.replica)
        else:
            waiting.discard(key.replica)
        if deleting:
            return not waiting
        surplus = self._surplus.setdefault(parent, set())
        if not has_objects(snapshot):
            # Many replicas may have been requested and never created: the set need not read them.
            return key.replica in surplus and not waiting
        surplus.add(key.replica)
        return not waiting or not deletion_requested(snapshot, len(surplus))

    def count(self, key: SetKey) -> int:
        """How many replicas of a set are known to be surplus."""
        return len(self._surplus.get(key, ()))

    def surplus_replicas(self, key: SetKey) -> Iterator[Snapshot | None]:
        """The snapshots of surplus replicas that have objects left, each read lazily; None for a replica that
        is gone or no longer surplus."""
        surplus = self._surplus.get(key, set())
        for replica in sorted(surplus):
            snapshot = self._observer.replica(ReplicaKey(key.namespace, key.name, replica))
            if snapshot and replica >= snapshot.workload.spec.replicas and has_objects(snapshot):
                yield snapshot
            else:
                surplus.discard(replica)
                if snapshot is not None:
                    self._waiting_of(key, snapshot.workload.metadata.uid).discard(replica)
                yield None

    def _waiting_of(self, key: SetKey, uid: str) -> set[int]:
        known, waiting = self._waiting.get(key, ("", set[int]()))
        if known != uid:
            waiting = set()
            self._waiting[key] = uid, waiting
        return waiting

    def forget(self, key: SetKey) -> None:
        """Drop the state of a set that no longer exists."""
        self._surplus.pop(key, None)
        self._waiting.pop(key, None)
