"""When a set is enqueued for deleted replicas: not for each pod, and as soon as it must act."""

from __future__ import annotations

from grove import timing
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import ReplicaKey, SetKey
from grove.operator.reconcilers.scale_in import ScaleInTracker
from grove.plan.model import Plan
from grove.plan.scale_in import has_objects, plan_scale_in
from grove.plan.snapshot import Snapshot
from tests.plan.builders import a_set
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator

KEY = SetKey("ns", "wl")
FINALIZER = ["grove.io/podcliqueset.grove.io"]


def plan(tracker: ScaleInTracker, sim: Simulator) -> Plan:
    """The plan for the surplus replicas, as the planner of a set computes it."""
    snapshots = [snapshot for snapshot in tracker.surplus_replicas(KEY) if snapshot is not None]
    return plan_scale_in(snapshots, sim.now) if snapshots else Plan()


class SimulatorObserver:
    """Reads snapshots from a simulator."""

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim

    def replica(self, key: ReplicaKey) -> Snapshot:
        return self._sim.snapshot(key.replica)


def running(replicas: int) -> Simulator:
    body = a_set("a:2", replicas=replicas)
    body["metadata"]["finalizers"] = FINALIZER
    sim = Simulator(body)
    for index in range(replicas):
        sim.settle(index)
    actors.run_all(sim)
    return sim


def recorded(tracker: ScaleInTracker, sim: Simulator, *indices: int) -> list[bool]:
    """Whether the set is enqueued when each of these replicas is recorded."""
    enqueued = []
    for index in indices:
        key, snapshot = ReplicaKey(*KEY, index), sim.snapshot(index)
        surplus = snapshot.workload.metadata.deletion_timestamp is None
        gone = surplus and not has_objects(snapshot)
        enqueued.append(tracker.record_gone(key) if gone else tracker.record(key, snapshot))
    return enqueued


def test_scale_in_enqueues_set_when_last_pod_is_gone() -> None:
    sim = running(3)
    tracker = ScaleInTracker(SimulatorObserver(sim), KeyStates())  # type: ignore[arg-type]
    assert not plan(tracker, sim).intents
    sim.scale("PodCliqueSet", "wl", 1)
    assert recorded(tracker, sim, 1, 2) == [True, True], "there is something to do"
    sim.execute(plan(tracker, sim))
    assert recorded(tracker, sim, 1, 2) == [False, False], "pods are terminating"
    assert plan(tracker, sim).requeue_at == sim.now + timing.SCALE_IN_POD_WAIT
    actors.finish_terminating(sim, sim.pods("wl-1-a"))
    assert recorded(tracker, sim, 1) == [False], "pods of the other replica are still terminating"
    actors.finish_terminating(sim)
    assert recorded(tracker, sim, 2) == [True], "the last pod is gone"
    sim.execute(plan(tracker, sim))
    assert plan(tracker, sim).intents == ()
    assert list(sim.api.all("PodClique")) == ["wl-0-a"]


def test_replica_scaled_out_again_does_not_block_scale_in() -> None:
    sim = running(3)
    tracker = ScaleInTracker(SimulatorObserver(sim), KeyStates())  # type: ignore[arg-type]
    sim.scale("PodCliqueSet", "wl", 1)
    recorded(tracker, sim, 1, 2)
    sim.scale("PodCliqueSet", "wl", 2)
    sim.execute(plan(tracker, sim))
    actors.finish_terminating(sim)
    assert recorded(tracker, sim, 2) == [True]
    assert len(sim.pods("wl-1-a")) == 2


def test_deleted_set_is_enqueued_when_last_pod_is_gone() -> None:
    sim = running(2)
    tracker = ScaleInTracker(SimulatorObserver(sim), KeyStates())  # type: ignore[arg-type]
    sim.api.delete("PodCliqueSet", "wl")
    assert recorded(tracker, sim, 0, 1) == [False, False], "the set is enqueued by its own deletion"
    for pod in sim.pods():
        sim.api.delete("Pod", pod)
    actors.finish_terminating(sim, sim.pods("wl-0-a"))
    assert recorded(tracker, sim, 0) == [False]
    actors.finish_terminating(sim)
    assert recorded(tracker, sim, 1) == [True]


def test_surplus_replica_without_objects_is_not_tracked() -> None:
    sim = running(2)
    tracker = ScaleInTracker(SimulatorObserver(sim), KeyStates())  # type: ignore[arg-type]
    sim.scale("PodCliqueSet", "wl", 1)
    assert recorded(tracker, sim, 2, 3, 40_000) == [False] * 3
    assert recorded(tracker, sim, 1) == [True]
    assert tracker.count(KEY) == 1
