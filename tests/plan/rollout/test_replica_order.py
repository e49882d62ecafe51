"""Which replica of a set is updated next, and when an update starts and ends."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.intents import Status
from grove.api.naming import well_known
from grove.api.types.podcliqueset import (
    PodCliqueSetUpdateProgress,
    ReplicaUpdateProgress,
    UpdateStrategy,
    UpdateStrategyType,
)
from grove.plan.desired.template_hash import generation_hash
from grove.plan.model import ReplicaReport, ReplicaSummary
from grove.plan.podcliqueset import plan_set
from grove.plan.rollout.replica_order import UpdateMode, next_update_progress, update_mode
from grove.plan.snapshot import SetSnapshot
from tests.plan.builders import a_set, read_set

NOW, THEN = 1_800_000_000.0, "2026-01-01T00:00:00Z"
AT_NOW = "2027-01-15T08:00:00Z"
HASH = generation_hash(read_set(a_set("a:2")))
FORMER = "0123456789abcdef"
ON_DELETE = UpdateStrategy(UpdateStrategyType.ON_DELETE)


def summary(word: str) -> ReplicaSummary:
    """`done`, `old`, `outdated`, `unscheduled`, `breached`, or `late` for one that knows only the former
    template."""
    return ReplicaSummary(
        update_complete=word in ("done", "late"),
        scheduled_pods=0 if word == "unscheduled" else 2,
        breached=word in ("breached", "unscheduled"),
        generation_hash=FORMER if word == "late" else HASH,
        outdated=word == "outdated",
    )


def updating(
    replicas: int, current: int | None = None, *, known: str = HASH, ended: bool = False, **strategy
):
    """A set in the middle of an update."""
    entries = () if current is None else (ReplicaUpdateProgress(current, THEN),)
    progress = PodCliqueSetUpdateProgress(THEN, THEN if ended else None, currently_updating=entries)
    found = read_set(a_set("a:2", replicas=replicas))
    return replace(
        found,
        metadata=replace(found.metadata, finalizers=(well_known.SET_FINALIZER,), resource_version="7"),
        spec=replace(found.spec, update_strategy=UpdateStrategy(**strategy)),
        status=replace(found.status, current_generation_hash=known, update_progress=progress),
    )


def after(workload, *words: str):
    progress = next_update_progress(workload, HASH, [summary(word) for word in words], NOW)
    assert progress is not None
    return progress


def current(progress) -> list[int]:
    return [entry.replica_index for entry in progress.currently_updating]


@pytest.mark.parametrize(
    ("before", "replicas", "expected"),
    [
        (None, "old old old", [0]),
        (None, "done old old", [1]),
        (None, "old old unscheduled", [2]),
        (None, "old breached old", [1]),
        (None, "old breached unscheduled", [2]),
        (0, "old old old", [0]),
        (0, "old unscheduled old", [0]),
        (0, "done old old", [1]),
        (1, "old done old", [0]),
        (2, "old old", [0]),
        (2, "done done", []),
        (0, "done done done", []),
        (None, "", []),
        (None, "old late old", []),
        (0, "done late old", [0]),
    ],
)
def test_next_replica_to_update(before, replicas, expected):
    words = replicas.split()
    progress = after(updating(len(words), before), *words)
    assert current(progress) == expected
    finished = set(words) <= {"done"}
    assert progress.update_ended_at == (AT_NOW if finished else None)


def test_first_template_is_no_update():
    found = read_set(a_set("a:2"))
    assert next_update_progress(found, HASH, [summary("done")], NOW) is None
    known = replace(found, status=replace(found.status, current_generation_hash=HASH))
    assert next_update_progress(known, HASH, [summary("done")], NOW) is None


def test_change_of_upstream_template_is_detected_by_pods():
    """Upstream's hashes cannot be computed here."""
    theirs = replace(updating(2, known="5c8d6b7f9x"), spec=read_set(a_set("a:2", replicas=2)).spec)
    fresh = replace(theirs, status=replace(theirs.status, update_progress=None))
    assert next_update_progress(fresh, HASH, [summary("done"), summary("done")], NOW) is None
    assert current(next_update_progress(fresh, HASH, [summary("done"), summary("outdated")], NOW)) == [1]


def test_changed_template_starts_update_and_selects_replica():
    finished = updating(2, known=FORMER, ended=True)
    assert after(finished, "old", "old") == PodCliqueSetUpdateProgress(
        AT_NOW, currently_updating=(ReplicaUpdateProgress(0, AT_NOW),)
    )
    assert current(after(finished, "late", "old")) == []


def test_superseding_update_continues_with_same_replica():
    progress = after(updating(3, 1, known=FORMER), "old", "old", "unscheduled")
    assert (progress.update_started_at, current(progress)) == (AT_NOW, [1])


def test_on_delete_update_ends_when_it_starts():
    changed = updating(2, known=FORMER, ended=True, type=UpdateStrategyType.ON_DELETE)
    assert after(changed, "old", "late") == PodCliqueSetUpdateProgress(AT_NOW, AT_NOW)


def test_strategy_change_ends_rolling_update_and_starts_none():
    assert after(updating(2, 0, type=UpdateStrategyType.ON_DELETE), "old", "old") == (
        PodCliqueSetUpdateProgress(THEN, AT_NOW)
    )
    assert after(updating(2, ended=True), "old", "old") == PodCliqueSetUpdateProgress(THEN, THEN)


def test_paused_selects_no_replica_and_records_completion():
    assert current(after(updating(2, paused=True), "old", "old")) == []
    assert current(after(updating(2, 0, paused=True), "done", "old")) == [0]
    assert after(updating(2, 0, paused=True), "done", "done").update_ended_at == AT_NOW


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (updating(2, 1), UpdateMode.ROLLING),
        (updating(2, 0), UpdateMode.NONE),
        (updating(2, 1, ended=True), UpdateMode.NONE),
        (updating(2, 1, known=FORMER), UpdateMode.NONE),
        (updating(2, 1, paused=True), UpdateMode.PAUSED),
        (updating(2, 1, type=UpdateStrategyType.ON_DELETE), UpdateMode.ON_DELETE),
        (read_set(a_set("a:2", replicas=2)), UpdateMode.NONE),
    ],
)
def test_update_mode_of_replica_1(workload, expected):
    assert update_mode(workload, 1, HASH) is expected


def test_selected_replica_is_written_on_latest_version_only():
    reports = {0: ReplicaReport(0, summary("done")), 1: ReplicaReport(0, summary("old"))}
    (write,) = plan_set(SetSnapshot(updating(2, 0), reports), NOW).intents
    assert isinstance(write, Status)
    assert write.body["metadata"] == {"resourceVersion": "7"}
    assert write.body["status"]["updateProgress"]["currentlyUpdating"][0]["replicaIndex"] == 1
    assert plan_set(SetSnapshot(updating(2, 1), reports), NOW).intents == (), "nothing to decide"


def test_update_counts_are_published_with_the_status():
    done = replace(summary("old"), cliques=2, updated_cliques=1, groups=1)
    plan = plan_set(SetSnapshot(updating(1, 0), {0: ReplicaReport(0, done)}), NOW)
    (status_update,) = plan.status_updates
    progress = status_update.desired.update_progress
    assert plan.intents == ()
    assert (progress.updated_pod_cliques_count, progress.total_pod_cliques_count) == (1, 2)
    assert progress.total_pod_clique_scaling_groups_count == 1


@pytest.mark.parametrize(
    ("workload", "words", "reported"),
    [
        (updating(2, known=FORMER, ended=True), "old old", ["UpdateStarted"]),
        (updating(2, 0), "done old", ["ReplicaUpdated"]),
        (updating(2, 1), "done done", ["ReplicaUpdated", "UpdateFinished"]),
        (updating(1, 1), "old", []),
        (updating(1, known=FORMER, type=UpdateStrategyType.ON_DELETE), "old", ["UpdateStarted"]),
        (updating(2, 0), "old old", []),
    ],
)
def test_update_events_follow_the_write_of_the_decision(workload, words, reported):
    reports = {index: ReplicaReport(0, summary(word)) for index, word in enumerate(words.split())}
    plan = plan_set(SetSnapshot(workload, reports), NOW)
    assert [event.reason.value for event in plan.events] == reported
    assert {event.intent for event in plan.events} <= {intent.id for intent in plan.intents}


@pytest.mark.parametrize(
    ("words", "opened"), [("old", False), ("outdated", True), ("old outdated", True), ("late outdated", True)]
)
def test_template_changed_before_first_record_is_rolled_out(words, opened):
    workload = replace(updating(len(words.split())), status=replace(read_set(a_set("a:2")).status))
    progress = next_update_progress(workload, HASH, [summary(word) for word in words.split()], NOW)
    assert (progress is not None and progress.update_started_at == AT_NOW) is opened


def test_decision_is_written_before_it_is_published():
    workload = updating(2, 0, known=FORMER)
    plan = plan_set(
        SetSnapshot(workload, {index: ReplicaReport(1, summary("old")) for index in range(2)}), NOW
    )
    (decision,) = plan.intents
    (status_update,) = plan.status_updates
    assert isinstance(decision, Status)
    assert decision.body["status"]["currentGenerationHash"] == HASH
    assert (
        status_update.desired.current_generation_hash,
        status_update.desired.update_progress.update_started_at,
    ) == (
        FORMER,
        THEN,
    )


def test_hash_not_published_before_all_replicas_planned_it():
    """Otherwise the change of the template would be lost."""
    workload = replace(updating(2), status=replace(read_set(a_set("a:2")).status))
    reports = {0: ReplicaReport(1, summary("late")), 1: ReplicaReport(1, summary("done"))}
    (status_update,) = plan_set(SetSnapshot(workload, reports), NOW).status_updates
    assert status_update.desired.current_generation_hash == ""
