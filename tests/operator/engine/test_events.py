"""Events of a pass: one for objects that are deleted together, none for those deleted with their set."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.intents import Create, Delete, Target
from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique, PodCliqueStatus, PodCliqueUpdateProgress
from grove.api.types.podcliquescalinggroup import (
    PodCliqueScalingGroup,
    PodCliqueScalingGroupSpec,
    PodCliqueScalingGroupStatus,
    PodCliqueScalingGroupUpdateProgress,
)
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.caches.registry import Caches
from grove.operator.engine.events import DeletedPod, deleted_pods, events_of_outcome, lost_scheduling_events
from grove.operator.engine.status_publisher import status_writes
from grove.plan.model import StatusUpdate
from tests.plan.builders import a_clique, a_set, read_set

SET = read_set(a_set("a:1", replicas=20))
SCALED_IN = read_set(a_set("a:1", replicas=1))
DELETED_SET = replace(SET, metadata=replace(SET.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
POD = Target("v1", "Pod", "wl-1-a-xyz", "ns")
CLIQUE = Target("grove.io/v1alpha1", "PodClique", "wl-1-a", "ns")
GANG = Target("scheduler.grove.io/v1alpha1", "PodGang", "wl-1", "ns")
OTHER = Target("scheduler.grove.io/v1alpha1", "PodGang", "wl-11", "ns")


@pytest.mark.parametrize(
    ("workload", "deleted", "emitted"),
    [
        (SET, [POD], 1),
        (SET, [POD, CLIQUE], 2),
        (SET, [POD, CLIQUE, GANG], 1),
        (SET, [POD, OTHER], 2),
        (DELETED_SET, [POD, CLIQUE, GANG], 0),
        (SCALED_IN, [GANG, POD], 1),
        (SCALED_IN, [CLIQUE], 0),
        (SCALED_IN, [GANG, OTHER, POD], 1),
    ],
    ids=[
        "pod",
        "pod and clique",
        "replica",
        "pod and gang of another replica",
        "deleted set",
        "surplus replica",
        "clique of surplus replica",
        "two surplus replicas",
    ],
)
def test_objects_deleted_with_parent_emit_no_event(workload, deleted: list[Target], emitted: int) -> None:
    outcome = Outcome(tuple(Result(Delete(target, uid="u"), IntentState.DONE) for target in deleted))
    assert len(list(events_of_outcome(Caches(), workload, outcome, {}))) == emitted


@pytest.mark.parametrize(
    ("names", "note"),
    [
        (["wl-1"], "Deleted PodGang wl-1"),
        (["wl-1", "wl-2"], "Deleted 2 PodGangs: wl-1, wl-2"),
        (
            [f"wl-{index}" for index in range(1, 13)],
            "Deleted 12 PodGangs: wl-1, wl-2, wl-3, wl-4, wl-5, wl-6, wl-7, wl-8, wl-9, wl-10, ...",
        ),
    ],
)
def test_replicas_scaled_in_together_are_one_event(names: list[str], note: str) -> None:
    gone = [Result(Delete(replace(GANG, name=name), uid="u"), IntentState.DONE) for name in names]
    (event,) = events_of_outcome(Caches(), SCALED_IN, Outcome(tuple(gone)), {})
    assert (event.regarding.kind, event.reason, event.note) == (
        "PodCliqueSet",
        "PodGangDeleteSuccessful",
        note,
    )


def test_failed_delete_of_deleted_set_emits_event() -> None:
    failed = Result(Delete(POD, uid="u"), IntentState.FAILED, error=ValueError("no"))
    assert len(list(events_of_outcome(Caches(), DELETED_SET, Outcome((failed,)), {}))) == 1


def read_clique() -> PodClique:
    object_labels = {labels.MANAGED_BY: labels.OPERATOR, labels.CLIQUE: CLIQUE.name}
    meta = {
        "namespace": "ns",
        "resourceVersion": "1",
        "name": CLIQUE.name,
        "uid": "c",
        "labels": object_labels,
    }
    return msgspec.json.decode(
        msgspec.json.encode({"metadata": meta, "spec": a_clique("a")["spec"]}), type=PodClique
    )


def test_deleted_pod_without_node_emits_event_on_clique() -> None:
    """The cache drops it with the reply of the delete, so its clique is read before."""
    caches = Caches()
    object_labels = {labels.MANAGED_BY: labels.OPERATOR, labels.CLIQUE: CLIQUE.name}
    meta = {"namespace": "ns", "resourceVersion": "1", "labels": object_labels}
    pod = {"metadata": {**meta, "name": POD.name, "uid": "u"}}
    caches.pods.apply_reply(msgspec.json.decode(msgspec.json.encode(pod), type=Pod))
    caches.cliques.apply_reply(read_clique())
    intent = Delete(POD, uid="u")
    known = deleted_pods(caches, [intent])
    caches.pods.apply_delete_reply("ns", POD.name, "u", None)
    (event,) = events_of_outcome(caches, SET, Outcome((Result(intent, IntentState.DONE),)), known)
    assert (event.regarding.kind, event.regarding.name) == ("PodClique", CLIQUE.name)


def test_replaced_pod_is_one_event() -> None:
    object_labels = {labels.CLIQUE: CLIQUE.name, labels.POD_INDEX: "0"}
    clique = read_clique()
    owners = [{"uid": "c"}]
    body = {"metadata": {"labels": object_labels, "ownerReferences": owners}}
    deletion, creation = Delete(POD, uid="u"), Create(Target("v1", "Pod", "wl-1-a-new", "ns"), body)
    other_labels = object_labels | {labels.POD_INDEX: "1"}
    other_body = {"metadata": {"labels": other_labels, "ownerReferences": owners}}
    other = Create(Target("v1", "Pod", "wl-1-a-more", "ns"), other_body)
    known = {deletion.id: DeletedPod(clique, (CLIQUE.name, "0"), POD.name)}
    done = Outcome(
        tuple(
            Result(intent, IntentState.DONE, name=intent.target.name)
            for intent in (creation, deletion, other)
        )
    )
    notes = [event.note for event in events_of_outcome(Caches(), SET, done, known)]
    assert notes == ["Created pod wl-1-a-new in place of wl-1-a-xyz", "Created pod wl-1-a-more"]
    half = Outcome(
        (Result(creation, IntentState.FAILED, error=ValueError("no")), Result(deletion, IntentState.DONE))
    )
    reasons = [event.reason for event in events_of_outcome(Caches(), SET, half, known)]
    assert reasons == ["PodCreateFailed", "PodDeleteSuccessful"]


@pytest.mark.parametrize(
    ("before", "after", "replicas", "state", "emitted"),
    [
        (2, 0, 2, IntentState.DONE, True),
        (2, 1, 2, IntentState.DONE, False),
        (0, 0, 2, IntentState.DONE, False),
        (2, 0, 0, IntentState.DONE, False),
        (2, 0, 2, IntentState.CONFLICT, False),
    ],
    ids=["all lost", "some lost", "none scheduled before", "zero replicas", "conflict with another leader"],
)
def test_all_scheduled_replicas_lost_emits_warning(
    before: int, after: int, replicas: int, state: IntentState, emitted: bool
) -> None:
    caches, clique = Caches(), read_clique()
    caches.cliques.apply_event("ADDED", replace(clique, spec=replace(clique.spec, replicas=replicas)))
    status_update = StatusUpdate(
        CLIQUE,
        PodCliqueStatus(scheduled_replicas=before),
        PodCliqueStatus(scheduled_replicas=after, ready_replicas=1),
    )
    outcome = Outcome(tuple(Result(intent, state) for intent in status_writes([status_update])))
    found = list(lost_scheduling_events(caches, [status_update], outcome))
    assert [each.reason for each in found] == (["AllScheduledReplicasLost"] if emitted else [])
    assert all(each.warning and each.regarding.name == CLIQUE.name for each in found)


def test_gang_termination_emits_no_scheduling_loss() -> None:
    caches = Caches()
    caches.cliques.apply_event("ADDED", read_clique())
    for restart_pending in (True, False):
        before, after = PodCliqueStatus(scheduled_replicas=1), PodCliqueStatus()
        status_update = StatusUpdate(CLIQUE, before, after, restart_pending=restart_pending)
        outcome = Outcome(
            tuple(Result(intent, IntentState.DONE) for intent in status_writes([status_update]))
        )
        assert bool(list(lost_scheduling_events(caches, [status_update], outcome))) is not restart_pending


def test_rollout_emits_no_scheduling_loss() -> None:
    caches = Caches()
    caches.cliques.apply_event("ADDED", read_clique())
    progress = PodCliqueUpdateProgress(
        update_started_at="2026-01-01T00:00:00Z", pod_clique_set_generation_hash="h", pod_template_hash="t"
    )
    for ended, emitted in ((None, False), ("2026-01-01T00:01:00Z", True)):
        rollout = PodCliqueStatus(update_progress=replace(progress, update_ended_at=ended))
        status_update = StatusUpdate(CLIQUE, PodCliqueStatus(scheduled_replicas=1), rollout)
        outcome = Outcome(
            tuple(Result(intent, IntentState.DONE) for intent in status_writes([status_update]))
        )
        assert bool(list(lost_scheduling_events(caches, [status_update], outcome))) is emitted


def test_group_rollout_emits_no_scheduling_loss_for_clique() -> None:
    clique, object_labels = read_clique(), {labels.MANAGED_BY: labels.OPERATOR}
    member = replace(clique.metadata, labels={**clique.metadata.labels, labels.GROUP: "wl-1-x"})
    meta = ObjectMeta(name="wl-1-x", namespace="ns", uid="g", resource_version="1", labels=object_labels)
    progress = PodCliqueScalingGroupUpdateProgress(
        update_started_at="2026-01-01T00:00:00Z", pod_clique_set_generation_hash="h"
    )
    for ended, emitted in ((None, False), ("2026-01-01T00:01:00Z", True)):
        caches = Caches()
        caches.cliques.apply_event("ADDED", replace(clique, metadata=member))
        status = PodCliqueScalingGroupStatus(update_progress=replace(progress, update_ended_at=ended))
        spec = PodCliqueScalingGroupSpec(clique_names=("a",), replicas=1)
        caches.groups.apply_event("ADDED", PodCliqueScalingGroup(metadata=meta, spec=spec, status=status))
        status_update = StatusUpdate(CLIQUE, PodCliqueStatus(scheduled_replicas=1), PodCliqueStatus())
        outcome = Outcome(
            tuple(Result(intent, IntentState.DONE) for intent in status_writes([status_update]))
        )
        assert bool(list(lost_scheduling_events(caches, [status_update], outcome))) is emitted
