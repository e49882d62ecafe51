"""What is news: what goes as a whole is told once, and the end of a set tells itself."""

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
ENDING = replace(SET, metadata=replace(SET.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
POD = Target("v1", "Pod", "wl-1-a-xyz", "ns")
CLIQUE = Target("grove.io/v1alpha1", "PodClique", "wl-1-a", "ns")
GANG = Target("scheduler.grove.io/v1alpha1", "PodGang", "wl-1", "ns")
OTHER = Target("scheduler.grove.io/v1alpha1", "PodGang", "wl-11", "ns")


@pytest.mark.parametrize(
    ("workload", "deleted", "told"),
    [
        (SET, [POD], 1),
        (SET, [POD, CLIQUE], 2),
        (SET, [POD, CLIQUE, GANG], 1),
        (SET, [POD, OTHER], 2),
        (ENDING, [POD, CLIQUE, GANG], 0),
        (SCALED_IN, [GANG, POD], 1),
        (SCALED_IN, [CLIQUE], 0),
        (SCALED_IN, [GANG, OTHER, POD], 1),
    ],
    ids=["a pod", "a clique", "a whole replica", "another", "a set", "too many", "the rest of it", "two"],
)
def test_what_went_along_is_no_news(workload, deleted: list[Target], told: int) -> None:
    outcome = Outcome(tuple(Result(Delete(target, uid="u"), IntentState.DONE) for target in deleted))
    assert len(list(events_of_outcome(Caches(), workload, outcome, {}))) == told


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
def test_replicas_that_go_together_are_told_of_together(names: list[str], note: str) -> None:
    gone = [Result(Delete(replace(GANG, name=name), uid="u"), IntentState.DONE) for name in names]
    (told,) = events_of_outcome(Caches(), SCALED_IN, Outcome(tuple(gone)), {})
    assert (told.regarding.kind, told.reason, told.note) == ("PodCliqueSet", "PodGangDeleteSuccessful", note)


def test_what_could_not_be_deleted_is_told_in_any_case() -> None:
    failed = Result(Delete(POD, uid="u"), IntentState.FAILED, error=ValueError("no"))
    assert len(list(events_of_outcome(Caches(), ENDING, Outcome((failed,)), {}))) == 1


def read_clique() -> PodClique:
    carried = {labels.MANAGED_BY: labels.OPERATOR, labels.CLIQUE: CLIQUE.name}
    meta = {"namespace": "ns", "resourceVersion": "1", "name": CLIQUE.name, "uid": "c", "labels": carried}
    return msgspec.json.decode(
        msgspec.json.encode({"metadata": meta, "spec": a_clique("a")["spec"]}), type=PodClique
    )


def test_a_pod_that_never_had_a_node_is_told_of_on_its_clique() -> None:
    """It is gone with the answer to its delete: nobody can be asked any more where it belonged."""
    caches = Caches()
    carried = {labels.MANAGED_BY: labels.OPERATOR, labels.CLIQUE: CLIQUE.name}
    meta = {"namespace": "ns", "resourceVersion": "1", "labels": carried}
    pod = {"metadata": {**meta, "name": POD.name, "uid": "u"}}
    caches.pods.apply_reply(msgspec.json.decode(msgspec.json.encode(pod), type=Pod))
    caches.cliques.apply_reply(read_clique())
    intent = Delete(POD, uid="u")
    known = deleted_pods(caches, [intent])
    caches.pods.apply_delete_reply("ns", POD.name, "u", None)
    (told,) = events_of_outcome(caches, SET, Outcome((Result(intent, IntentState.DONE),)), known)
    assert (told.regarding.kind, told.regarding.name) == ("PodClique", CLIQUE.name)


def test_a_pod_that_is_replaced_is_told_of_once() -> None:
    carried = {labels.CLIQUE: CLIQUE.name, labels.POD_INDEX: "0"}
    clique = read_clique()
    owners = [{"uid": "c"}]
    body = {"metadata": {"labels": carried, "ownerReferences": owners}}
    going, coming = Delete(POD, uid="u"), Create(Target("v1", "Pod", "wl-1-a-new", "ns"), body)
    other = Create(Target("v1", "Pod", "wl-1-a-more", "ns"), {
        "metadata": {"labels": carried | {labels.POD_INDEX: "1"}, "ownerReferences": owners}})  # fmt: skip
    known = {going.id: DeletedPod(clique, (CLIQUE.name, "0"), POD.name)}
    done = Outcome(
        tuple(Result(intent, IntentState.DONE, name=intent.target.name) for intent in (coming, going, other))
    )
    notes = [told.note for told in events_of_outcome(Caches(), SET, done, known)]
    assert notes == ["Created pod wl-1-a-new in place of wl-1-a-xyz", "Created pod wl-1-a-more"]
    half = Outcome(
        (Result(coming, IntentState.FAILED, error=ValueError("no")), Result(going, IntentState.DONE))
    )
    reasons = [told.reason for told in events_of_outcome(Caches(), SET, half, known)]
    assert reasons == ["PodCreateFailed", "PodDeleteSuccessful"]


@pytest.mark.parametrize(
    ("before", "after", "wanted", "state", "told"),
    [
        (2, 0, 2, IntentState.DONE, True),
        (2, 1, 2, IntentState.DONE, False),
        (0, 0, 2, IntentState.DONE, False),
        (2, 0, 0, IntentState.DONE, False),
        (2, 0, 2, IntentState.CONFLICT, False),
    ],
    ids=["all lost", "some lost", "none there before", "none asked for", "another leader tells"],
)
def test_who_lost_all_places_says_so(
    before: int, after: int, wanted: int, state: IntentState, told: bool
) -> None:
    caches, clique = Caches(), read_clique()
    caches.cliques.apply_event("ADDED", replace(clique, spec=replace(clique.spec, replicas=wanted)))
    status_update = StatusUpdate(
        CLIQUE,
        PodCliqueStatus(scheduled_replicas=before),
        PodCliqueStatus(scheduled_replicas=after, ready_replicas=1),
    )
    outcome = Outcome(tuple(Result(intent, state) for intent in status_writes([status_update])))
    found = list(lost_scheduling_events(caches, [status_update], outcome))
    assert [each.reason for each in found] == (["AllScheduledReplicasLost"] if told else [])
    assert all(each.warning and each.regarding.name == CLIQUE.name for each in found)


def test_what_a_termination_takes_down_is_told_by_the_termination() -> None:
    caches = Caches()
    caches.cliques.apply_event("ADDED", read_clique())
    for restart_pending in (True, False):
        before, after = PodCliqueStatus(scheduled_replicas=1), PodCliqueStatus()
        status_update = StatusUpdate(CLIQUE, before, after, restart_pending=restart_pending)
        outcome = Outcome(
            tuple(Result(intent, IntentState.DONE) for intent in status_writes([status_update]))
        )
        assert bool(list(lost_scheduling_events(caches, [status_update], outcome))) is not restart_pending


def test_what_an_update_takes_down_is_no_loss() -> None:
    caches = Caches()
    caches.cliques.apply_event("ADDED", read_clique())
    progress = PodCliqueUpdateProgress(
        update_started_at="2026-01-01T00:00:00Z", pod_clique_set_generation_hash="h", pod_template_hash="t"
    )
    for ended, told in ((None, False), ("2026-01-01T00:01:00Z", True)):
        going = PodCliqueStatus(update_progress=replace(progress, update_ended_at=ended))
        status_update = StatusUpdate(CLIQUE, PodCliqueStatus(scheduled_replicas=1), going)
        outcome = Outcome(
            tuple(Result(intent, IntentState.DONE) for intent in status_writes([status_update]))
        )
        assert bool(list(lost_scheduling_events(caches, [status_update], outcome))) is told


def test_what_the_update_of_its_group_takes_down_is_no_loss_of_a_clique() -> None:
    clique, carried = read_clique(), {labels.MANAGED_BY: labels.OPERATOR}
    member = replace(clique.metadata, labels={**clique.metadata.labels, labels.GROUP: "wl-1-x"})
    meta = ObjectMeta(name="wl-1-x", namespace="ns", uid="g", resource_version="1", labels=carried)
    progress = PodCliqueScalingGroupUpdateProgress(
        update_started_at="2026-01-01T00:00:00Z", pod_clique_set_generation_hash="h"
    )
    for ended, told in ((None, False), ("2026-01-01T00:01:00Z", True)):
        caches = Caches()
        caches.cliques.apply_event("ADDED", replace(clique, metadata=member))
        status = PodCliqueScalingGroupStatus(update_progress=replace(progress, update_ended_at=ended))
        spec = PodCliqueScalingGroupSpec(clique_names=("a",), replicas=1)
        caches.groups.apply_event("ADDED", PodCliqueScalingGroup(metadata=meta, spec=spec, status=status))
        status_update = StatusUpdate(CLIQUE, PodCliqueStatus(scheduled_replicas=1), PodCliqueStatus())
        outcome = Outcome(
            tuple(Result(intent, IntentState.DONE) for intent in status_writes([status_update]))
        )
        assert bool(list(lost_scheduling_events(caches, [status_update], outcome))) is told
