"""Which events of a plan are emitted, by what became of its writes, and the events of writes that failed."""

from __future__ import annotations

from itertools import chain

import pytest
from msgspec.structs import replace

from grove.api.event_reasons import EventReporter
from grove.api.intents import Create, Delete, Intent, ObjectRef, Patch, Status, Target, uid_of
from grove.api.types.podclique import PodClique
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.engine.events import events_of_statuses, events_of_writes, lasting_events
from grove.plan.model import Plan, PlannedEvent, StatusUpdate
from grove.plan.writes.events import UpdatedUnit, deleted, pod_deleted, pod_events

SET = ObjectRef("grove.io/v1alpha1", "PodCliqueSet", "wl", "ns", "s")
CLIQUE = ObjectRef("grove.io/v1alpha1", "PodClique", "wl-1-a", "ns", "c")
GROUP = ObjectRef("grove.io/v1alpha1", "PodCliqueScalingGroup", "wl-1-x", "ns", "g")
POD = Target("v1", "Pod", "wl-1-a-xyz", "ns")
GANG = Target("scheduler.grove.io/v1alpha1", "PodGang", "wl-1", "ns")

CREATE = Create(replace(POD, name="wl-1-a-new"), {}, regarding=CLIQUE)
DELETE = Delete(POD, uid="u", regarding=CLIQUE)
DONE, FAILED, SKIPPED = IntentState.DONE, IntentState.FAILED, IntentState.SKIPPED


def result(intent: Intent, state: IntentState = DONE) -> Result:
    return Result(intent, state, error=ValueError("no") if state is FAILED else None)


@pytest.mark.parametrize(
    ("created", "removed", "emitted"),
    [
        (DONE, DONE, ["Created pod wl-1-a-new in place of wl-1-a-xyz"]),
        (FAILED, DONE, ["Deleted pod wl-1-a-xyz", "Could not create Pod: no"]),
        (SKIPPED, DONE, ["Deleted pod wl-1-a-xyz"]),
        (SKIPPED, FAILED, ["Could not delete Pod wl-1-a-xyz: no"]),
        (SKIPPED, SKIPPED, []),
    ],
)
def test_replacement_is_one_event_if_both_writes_succeed(created, removed, emitted):
    plan = Plan(events=tuple(pod_events({0: CREATE}, {0: [DELETE]})))
    outcome = Outcome((result(CREATE, created), result(DELETE, removed)))
    records = list(events_of_writes(plan, outcome, SET))
    assert [record.note for record in records] == emitted
    assert all(record.regarding == CLIQUE for record in records)
    assert all(record.reporter == "podclique-controller" for record in records)


@pytest.mark.parametrize(
    ("states", "notes"),
    [
        ([DONE], [(GROUP, "Created pod wl-1 in place of old-1")]),
        ([DONE, DONE], [(GROUP, "Created 2 pods of replica 0 in place of outdated ones: wl-1, wl-2")]),
        (
            [DONE, FAILED],
            [
                (GROUP, "Created pod wl-1 in place of old-1"),
                (CLIQUE, "Deleted pod old-2"),
                (CLIQUE, "Could not create Pod: no"),
            ],
        ),
        ([SKIPPED, SKIPPED], [(CLIQUE, "Deleted pod old-1"), (CLIQUE, "Deleted pod old-2")]),
    ],
)
def test_pods_that_update_replaces_are_one_event(states, notes):
    creates = [replace(CREATE, target=replace(POD, name=f"wl-{index}")) for index, _ in enumerate(states, 1)]
    deletes = [replace(DELETE, target=replace(POD, name=f"old-{index}")) for index, _ in enumerate(states, 1)]
    unit = UpdatedUnit(GROUP, EventReporter.GROUP, " of replica 0")
    pairs = zip(creates, deletes, strict=True)
    plan = Plan(events=tuple(chain.from_iterable(pod_events({0: c}, {0: [d]}, unit) for c, d in pairs)))
    outcome = Outcome((*map(result, creates, states), *map(result, deletes)))
    records = list(events_of_writes(plan, outcome, SET))
    assert sorted((record.regarding.name, record.note) for record in records) == sorted(
        (regarding.name, note) for regarding, note in notes
    )


@pytest.mark.parametrize(
    ("states", "note"),
    [
        ([DONE], "Deleted PodGang wl-1"),
        ([DONE, DONE], "Deleted 2 PodGangs: wl-1, wl-2"),
        ([SKIPPED, DONE, DONE], "Deleted 2 PodGangs: wl-2, wl-3"),
        (
            [DONE] * 12,
            "Deleted 12 PodGangs: wl-1, wl-2, wl-3, wl-4, wl-5, wl-6, wl-7, wl-8, wl-9, wl-10, ...",
        ),
    ],
)
def test_replicas_scaled_in_together_are_one_event(states: list[IntentState], note: str) -> None:
    deletes = [Delete(replace(GANG, name=f"wl-{index}"), uid="u") for index, _ in enumerate(states, 1)]
    plan = Plan(events=tuple(deleted(SET, each, together=True) for each in deletes))
    outcome = Outcome(tuple(map(result, deletes, states)))
    (event,) = events_of_writes(plan, outcome, SET)
    assert (event.regarding, event.reason, event.note) == (SET, "PodGangDeleteSuccessful", note)


@pytest.mark.parametrize(
    ("intent", "emitted"),
    [
        (CREATE, (CLIQUE, "PodCreateFailed", "podclique-controller")),
        (DELETE, (CLIQUE, "PodDeleteFailed", "podclique-controller")),
        (replace(DELETE, regarding=None), (SET, "PodDeleteFailed", "podcliqueset-controller")),
        (Create(GANG, {}), (SET, "PodGangCreateOrUpdateFailed", "podcliqueset-controller")),
        (Delete(GANG), (SET, "PodGangDeleteFailed", "podcliqueset-controller")),
        (Create(replace(GANG, kind="ResourceClaim"), {}, regarding=GROUP), None),
        (Patch(GANG, {}), None),
    ],
)
def test_failed_write_emits_warning_on_the_object_it_names(intent: Intent, emitted) -> None:
    records = list(events_of_writes(Plan(), Outcome((result(intent, FAILED),)), SET))
    found = [(record.regarding, record.reason, record.reporter) for record in records]
    assert found == ([emitted] if emitted else [])
    assert all(record.warning for record in records)


def test_event_on_created_clique_has_its_uid() -> None:
    created = Create(Target(PodClique.KIND.api_version, "PodClique", "wl-1-a", "ns"), {})
    rejected = replace(CREATE, regarding=replace(CLIQUE, uid=uid_of(created)))
    outcome = Outcome((Result(created, DONE, uid="c"), result(rejected, FAILED)))
    (event,) = events_of_writes(Plan(), outcome, SET)
    assert event.regarding == CLIQUE


def lasting(note: str, **fields: str) -> PlannedEvent:
    return PlannedEvent(CLIQUE, "SchedulerSyncFailed", note, warning=True, **fields)


def test_lasting_events_differ_by_identity_or_note() -> None:
    counted = lasting("1 node", identity="nodes")
    plan = Plan(events=(lasting("a"), lasting("a"), lasting("b"), counted, lasting("c", intent="x")))
    assert list(lasting_events(plan).values()) == [lasting("a"), lasting("b"), counted]
    later = Plan(events=(lasting("2 nodes", identity="nodes"),))
    assert lasting_events(later).keys() < lasting_events(plan).keys()
    assert list(events_of_writes(plan, Outcome(()), SET)) == []


@pytest.mark.parametrize(("state", "emitted"), [(DONE, 1), (IntentState.CONFLICT, 0)])
def test_event_of_status_follows_its_write(state: IntentState, emitted: int) -> None:
    target = Target(CLIQUE.api_version, CLIQUE.kind, CLIQUE.name, "ns")
    updates = [StatusUpdate(target, 0, 1, events=(lasting("lost"),)), StatusUpdate(GANG, 0, 1)]
    outcome = Outcome((result(Status(target, {}), state), result(Status(GANG, {}))))
    assert len(list(events_of_statuses(updates, outcome))) == emitted


def test_event_of_clique_that_was_not_created_is_on_the_set():
    """An orphaned pod is deleted while the PodClique of its name cannot be created."""
    clique = Create(Target("grove.io/v1alpha1", "PodClique", "wl-1-a", "ns"), {})
    delete = replace(DELETE, regarding=replace(CLIQUE, uid=uid_of(clique)))
    outcome = Outcome((result(clique, SKIPPED), result(delete)))
    (record,) = events_of_writes(Plan(events=(pod_deleted(delete),)), outcome, SET)
    assert record.regarding == SET


def test_planned_failure_event_has_the_error_in_its_note():
    planned = PlannedEvent(SET, "Failed", "Failed to create it", intent=CREATE.id, on_failure=True)
    done, failed = (Outcome((result(CREATE, state),)) for state in (DONE, FAILED))
    assert list(events_of_writes(Plan(events=(planned,)), done, None)) == []
    notes = [record.note for record in events_of_writes(Plan(events=(planned,)), failed, None)]
    assert notes[0] == "Failed to create it: no"
