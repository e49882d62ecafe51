"""Replicas that go: those that their set no longer has, and those of a set that ends.

They are seen off by the plan of their set, all together: the count that says so is confirmed once for all,
and what holds no GPUs waits for the pods of all. This is what a set has to know of its replicas for that; it
is told when there is something for it to do, not of each pod.
"""

from __future__ import annotations

from collections.abc import Iterator

from grove.operator.keys import ReplicaKey, SetKey, parent_of
from grove.operator.observers.workload import Observer
from grove.plan.model import Plan
from grove.plan.scale_in import deletion_requested, has_objects, has_pods, plan_scale_in
from grove.plan.snapshot import Snapshot


class ScaleInTracker:
    """Remembers which replicas of each set are on their way out."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._surplus: dict[SetKey, set[int]] = {}
        self._waiting: dict[SetKey, tuple[str, set[int]]] = {}
        """The UID of the set (its successor has its name), and its replicas that go and still have pods."""

    def record(self, key: ReplicaKey, snapshot: Snapshot) -> bool:
        """How a replica stands that goes. Returns whether its set should see to it now."""
        parent, ending = parent_of(key), snapshot.workload.metadata.deletion_timestamp is not None
        waiting = self._waiting_of(parent, snapshot.workload.metadata.uid)
        if has_pods(snapshot):
            waiting.add(key.replica)
        else:
            waiting.discard(key.replica)
        if ending:
            return not waiting
        surplus = self._surplus.setdefault(parent, set())
        if not has_objects(snapshot):
            # Many may have been asked for and never made: the set need not look at them.
            return key.replica in surplus and not waiting
        surplus.add(key.replica)
        return not waiting or not deletion_requested(snapshot, len(surplus))

    def count(self, key: SetKey) -> int:
        """How many replicas of a set are too many, as far as is known."""
        return len(self._surplus.get(key, ()))

    def surplus_replicas(self, key: SetKey) -> Iterator[Snapshot | None]:
        """The replicas that are too many and of which something is left, each looked at when its turn comes;
        None for one that is gone or wanted again."""
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

    def plan(self, key: SetKey, now: float) -> Plan:
        """What is to be done about replicas that are too many."""
        snapshots = [snapshot for snapshot in self.surplus_replicas(key) if snapshot is not None]
        return plan_scale_in(snapshots, now) if snapshots else Plan()

    def _waiting_of(self, key: SetKey, uid: str) -> set[int]:
        known, waiting = self._waiting.get(key, ("", set[int]()))
        if known != uid:
            waiting = set()
            self._waiting[key] = uid, waiting
        return waiting

    def forget(self, key: SetKey) -> None:
        """There is no such set any more."""
        self._surplus.pop(key, None)
        self._waiting.pop(key, None)
