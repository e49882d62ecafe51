"""Restarts: in which order components get the new id, and when it is another one's turn."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.types.podclique import PodClique, PodCliqueSpec, PodCliqueStatus
from grove.api.types.podcliqueset import PodCliqueSetUpdateProgress
from grove.dynamo.snapshot import GraphSnapshot
from tests.dynamo.builders import component, deployment
from tests.dynamo.reconcile.test_planner import done, planned, snapshot, writes

NAMES = ("Cache", "Api", "Worker")


def graph(**restart):
    return deployment(*(component(name) for name in NAMES), **({"restart": restart} if restart else {}))


def restart_ids(found: GraphSnapshot) -> dict[str, str]:
    """The id that each clique of the set carries."""
    assert found.workload is not None
    return {
        clique.name: clique.annotations["nvidia.com/restartAt"]
        for clique in found.workload.spec.template.cliques
        if "nvidia.com/restartAt" in clique.annotations
    }


def wanting(found: GraphSnapshot, **restart) -> GraphSnapshot:
    return replace(found, stored=replace(found.stored, spec=snapshot(graph(**restart)).stored.spec))


def updated(found: GraphSnapshot, *, generation: int, finished: bool = True, to: str = "") -> GraphSnapshot:
    """As Grove tells it: the set is at this generation, and all pods are, unless it is not finished."""
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


def told(found: GraphSnapshot):
    status = planned(found).status_update.desired.restart
    return status and (status.observed_id, status.phase, status.in_progress)


def test_components_restart_one_after_another_in_the_order_of_their_names():
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
    assert told(found) == ("a", "Completed", ())


def test_nobody_is_next_before_grove_has_seen_the_turn():
    found = done(wanting(running(), id="a"))
    assert found.workload is not None
    ahead = replace(found.workload, metadata=replace(found.workload.metadata, generation=2))
    assert writes(planned(replace(found, workload=ahead))) == []
    assert told(replace(found, workload=ahead)) == ("a", "Restarting", ("Api",))


def test_in_the_order_that_was_asked_for():
    found = wanting(running(), id="a", strategy={"order": ["Worker", "Cache", "Api"]})
    assert set(restart_ids(done(found))) == {"worker"}


def test_all_at_once():
    found = done(wanting(running(), id="a", strategy={"type": "Parallel"}))
    assert restart_ids(found) == {"api": "a", "cache": "a", "worker": "a"}
    assert told(updated(found, generation=2)) == ("a", "Completed", ())


def test_the_next_restart_leaves_those_alone_whose_turn_it_is_not():
    found = updated(done(wanting(running(), id="a", strategy={"type": "Parallel"})), generation=2)
    found = done(wanting(found, id="b"))
    assert restart_ids(found) == {"api": "b", "cache": "a", "worker": "a"}


def test_taking_it_away_restarts_nothing():
    found = updated(done(wanting(running(), id="a", strategy={"type": "Parallel"})), generation=2)
    found = wanting(found)
    assert writes(planned(found)) == []
    assert told(found) is None
