"""Tracks replicas that are to be deleted: those above `spec.replicas`, and those of a deleted set.

The plan of the set deletes them together: the lower `spec.replicas` is verified once for all of them, and
objects without GPUs are deleted after the pods of all of them. The tracker knows which replicas these are,
and when their set has something to do: it is not enqueued for each pod.
"""

from __future__ import annotations

from collections.abc import Iterator

from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import ReplicaKey, SetKey, parent_of
from grove.operator.observers.workload import Observer
from grove.plan.scale_in import deletion_requested, has_objects, has_pods
from grove.plan.snapshot import Snapshot


class ScaleInTracker:
    """Stores in the records of sets which replicas are surplus, and which of them still have pods."""

    def __init__(self, observer: Observer, states: KeyStates) -> None:
        self._observer, self._states = observer, states

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
        surplus = self._states.of(parent).surplus
        surplus.add(key.replica)
        return not waiting or not deletion_requested(snapshot)

    def record_gone(self, key: ReplicaKey) -> bool:
        """No object of a surplus replica is left. Returns whether its set must act now."""
        state = self._states.find(parent_of(key))
        if state is None:
            return False
        state.with_pods.discard(key.replica)
        return key.replica in state.surplus and not state.with_pods

    def count(self, key: SetKey) -> int:
        """How many replicas of a set are known to be surplus."""
        state = self._states.find(key)
        return len(state.surplus) if state is not None else 0

    def surplus_replicas(self, key: SetKey) -> Iterator[Snapshot | None]:
        """The snapshots of surplus replicas that have objects left, each read lazily; None for a replica that
        is gone or no longer surplus."""
        surplus = self._states.of(key).surplus
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
        state = self._states.of(key)
        if state.with_pods_uid != uid:
            state.with_pods_uid, state.with_pods = uid, set()
        return state.with_pods
