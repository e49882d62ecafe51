"""Restarts: the order in which components get the new id, and when the next component follows."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.types.podclique import PodClique, PodCliqueSpec, PodCliqueStatus
from grove.api.types.podcliqueset import PodCliqueSetUpdateProgress
from grove.dynamo.snapshot import GraphSnapshot
from tests.dynamo.builders import component, deployment, with_stored
from tests.dynamo.reconcile.test_planner import done, planned, snapshot, status_of, writes

NAMES = ("Cache", "Api", "Worker")


def graph(**restart):
    return deployment(*(component(name) for name in NAMES), **({"restart": restart} if restart else {}))


def restart_ids(found: GraphSnapshot) -> dict[str, str]:
    """The restart id of each clique of the set."""
    assert found.workload is not None
    return {
        clique.name: clique.annotations["nvidia.com/restartAt"]
        for clique in found.workload.spec.template.cliques
        if "nvidia.com/restartAt" in clique.annotations
    }


def wanting(found: GraphSnapshot, **restart) -> GraphSnapshot:
    return with_stored(found, replace(found.stored, spec=snapshot(graph(**restart)).stored.spec))


def updated(found: GraphSnapshot, *, generation: int, finished: bool = True, to: str = "") -> GraphSnapshot:
    """The status of the set at this generation; all pods are of it too, unless the rollout is unfinished."""
    assert found.workload is not None
    hash_ = to or f"hash-{generation}"
    ended = "2026-01-01T00:00:00Z" if finished else None
    progress = PodCliqueSetUpdateProgress(update_started_at="2026-01-01T00:00:00Z", update_ended_at=ended)
    status = replace(
        found.workload.status,
        observed_generation=generation,
        current_generation_hash=hash_,
        update_progress=progress,
    )
    meta = replace(found.workload.metadata, generation=generation)
    return replace(
        found,
        workload=replace(found.workload, metadata=meta, status=status),
        cliques={f"app-0-{name.lower()}": clique(name, hash_) for name in NAMES},
    )


def clique(name: str, hash_: str) -> PodClique:
    spec = PodCliqueSpec(role_name="r", pod_spec=msgspec.Raw(b"{}"), replicas=1, min_available=1)
    counts = {"replicas": 1, "ready_replicas": 1, "updated_replicas": 1, "scheduled_replicas": 1}
    status = PodCliqueStatus(observed_generation=1, current_pod_clique_set_generation_hash=hash_, **counts)
    return PodClique(metadata=ObjectMeta(name=name, generation=1), spec=spec, status=status)


def running() -> GraphSnapshot:
    return updated(done(snapshot(graph())), generation=1)


def restart_status(found: GraphSnapshot):
    status = status_of(planned(found)).restart
    return status and (status.observed_id, status.phase, status.in_progress)


def test_components_restart_sequentially_by_name():
    found = wanting(running(), id="a")
    turns = []
    for generation in (2, 3, 4):
        assert writes(planned(found)) == ["patch PodCliqueSet ns/app"]
        found = done(found)
        turns.append(set(restart_ids(found)))
        assert writes(planned(updated(found, generation=generation, finished=False))) == []
        found = updated(found, generation=generation)
    assert turns == [{"api"}, {"api", "cache"}, {"api", "cache", "worker"}]
    assert writes(planned(found)) == []
    assert restart_status(found) == ("a", "Completed", ())


def test_next_restart_waits_for_observed_generation():
    found = done(wanting(running(), id="a"))
    assert found.workload is not None
    ahead = replace(found.workload, metadata=replace(found.workload.metadata, generation=2))
    assert writes(planned(replace(found, workload=ahead))) == []
    assert restart_status(replace(found, workload=ahead)) == ("a", "Restarting", ("Api",))


def test_restart_follows_given_order():
    found = wanting(running(), id="a", strategy={"order": ["Worker", "Cache", "Api"]})
    assert set(restart_ids(done(found))) == {"worker"}


def test_parallel_restart_sets_all_ids():
    found = done(wanting(running(), id="a", strategy={"type": "Parallel"}))
    assert restart_ids(found) == {"api": "a", "cache": "a", "worker": "a"}
    assert restart_status(updated(found, generation=2)) == ("a", "Completed", ())


def test_second_restart_keeps_ids_until_due():
    found = updated(done(wanting(running(), id="a", strategy={"type": "Parallel"})), generation=2)
    found = done(wanting(found, id="b"))
    assert restart_ids(found) == {"api": "b", "cache": "a", "worker": "a"}


def test_removed_restart_restarts_nothing():
    found = updated(done(wanting(running(), id="a", strategy={"type": "Parallel"})), generation=2)
    found = wanting(found)
    assert writes(planned(found)) == []
    assert restart_status(found) is None
