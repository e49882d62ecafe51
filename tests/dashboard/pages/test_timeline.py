"""One time line of conditions, records and events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from grove import timing
from grove.api.meta import Condition
from grove.api.naming import annotations as keys
from grove.api.types.podcliqueset import PodCliqueSetUpdateProgress
from grove.dashboard.pages.timeline import Timeline, timeline
from grove.explanation.model import EventView, ObjectRef
from grove.explanation.subtree import Subtree
from grove.plan.timestamps import rfc3339
from tests.explanation.test_findings import RUNNING

BEGIN = 1_800_000_000.0  # 2027-01-15T08:00:00Z, when the set of the tests is created
SET, GANG, CLIQUE = ("PodCliqueSet", "demo"), ("PodGang", "demo-0"), ("PodClique", "demo-0-router")
PODS = [each for each in RUNNING.pods if each.metadata.name.startswith("demo-0-router-")]


def at(seconds: float) -> str:
    """A time after the creation, as statuses have it."""
    return rfc3339(BEGIN + seconds)


def exactly(seconds: float) -> str:
    """A time as events have it."""
    return f"{rfc3339(BEGIN + seconds)[:-1]}.{round(seconds % 1 * 1e6):06d}Z"


def an_event(
    seconds: float, reason: str, about: tuple[str, str] = SET, message: str = "", **more: Any
) -> EventView:
    found = {"type": "Normal", "count": 1, **more}
    return EventView(
        exactly(seconds), 0, found["type"], reason, ObjectRef(*about, "ns"), message, found["count"]
    )


def with_condition(tree: Subtree, kind: str, type_: str, status: str, seconds: float, reason: str = "R"):
    """The tree with a condition on its set, or on its first gang or clique."""
    new = Condition(type_, status, reason, "said so", last_transition_time=at(seconds))

    def on(found):
        conditions = (*found.status.conditions, new)
        return replace(found, status=replace(found.status, conditions=conditions))

    match kind:
        case "set":
            return replace(tree, workload=on(tree.workload))
        case "gang":
            return replace(tree, gangs=(on(tree.gangs[0]), *tree.gangs[1:]))
        case _:
            return replace(tree, cliques=(on(tree.cliques[0]), *tree.cliques[1:]))


def with_update(tree: Subtree, started: float, ended: float | None = None) -> Subtree:
    assert tree.workload is not None
    progress = PodCliqueSetUpdateProgress(at(started), None if ended is None else at(ended))
    status = replace(tree.workload.status, update_progress=progress)
    return replace(tree, workload=replace(tree.workload, status=status))


def with_records(tree: Subtree, text: str) -> Subtree:
    gang = tree.gangs[0]
    meta = replace(gang.metadata, annotations={keys.TERMINATIONS: text})
    return replace(tree, gangs=(replace(gang, metadata=meta), *tree.gangs[1:]))


def rows(found: Timeline) -> list[tuple[str, str, str]]:
    """Kind, title and source of the entries, without the creation of the set."""
    assert (found.entries[0].kind, found.entries[0].title) == ("start", "Created")
    return [(str(each.kind), each.title, str(each.source)) for each in found.entries[1:]]


@pytest.mark.parametrize(
    ("kind", "type_", "status", "wanted"),
    [
        ("gang", "Ready", "True", [("start", "Ready", "condition")]),
        ("gang", "Ready", "Unknown", []),
        ("gang", "Scheduled", "False", [("placement", "Not scheduled", "condition")]),
        ("gang", "Unhealthy", "True", [("recovery", "Unhealthy", "condition")]),
        ("gang", "Unhealthy", "False", []),
        ("clique", "MinAvailableBreached", "True", [("recovery", "Below minAvailable", "condition")]),
        ("clique", "MinAvailableBreached", "False", []),
        ("clique", "UpdateInProgress", "Unknown", [("rollout", "Update is late", "condition")]),
        ("set", "SchedulerTopologyDrift", "True", []),
        ("set", "ComputeDomainsReady", "True", [("placement", "ComputeDomains ready", "condition")]),
        ("set", "OfSomeUser", "True", []),
    ],
)  # fmt: skip
def test_condition_is_an_entry_of_its_kind(kind, type_, status, wanted):
    found = timeline(with_condition(RUNNING, kind, type_, status, 9), [])
    assert rows(found) == wanted


def test_wait_has_its_time_and_the_reason_of_now():
    tree = with_condition(RUNNING, "gang", "Waiting", "True", 9, "GangTooLarge")
    tree = with_condition(tree, "set", "Waiting", "True", 9, "GangTooLarge")
    found = timeline(tree, [])
    assert rows(found) == [("placement", "Waits since then, now: GangTooLarge", "condition")]
    entry = found.entries[-1]
    assert (entry.severity, entry.about.kind, entry.message) == ("warning", "PodGang", "now: said so")


def test_later_reason_is_not_claimed_for_the_begin_of_a_wait():
    tree = with_condition(RUNNING, "gang", "Waiting", "True", 9, "NodeCordoned")
    found = timeline(tree, [
        an_event(9.4, "InsufficientResources", GANG, type="Warning"),
        an_event(369, "NodeCordoned", GANG, type="Warning"),
    ])  # fmt: skip
    assert [(each.time, each.title) for each in found.entries[1:]] == [
        (at(9), "Waits since then, now: NodeCordoned"),
        (exactly(9.4), "InsufficientResources"),
        (exactly(369), "NodeCordoned"),
    ]


def test_later_reason_of_a_wait_begins_no_phase():
    tree = with_condition(RUNNING, "gang", "Waiting", "True", 9, "ContainerCrashing")
    found = timeline(tree, [an_event(12, "Started", ("Pod", PODS[0].metadata.name))])
    assert [each.kind for each in found.entries] == ["start", "start", "start"]


def test_entries_of_one_time_are_in_the_order_of_names():
    events = [an_event(5, f"R{i}", ("Pod", f"demo-0-router-{i}"), f"m{i}") for i in range(9)]
    one, other = timeline(RUNNING, events), timeline(RUNNING, reversed(events))
    assert one == other
    assert [each.title for each in one.entries[1:]] == [f"R{i}" for i in range(9)]


def test_condition_and_event_that_say_the_same_are_one_entry():
    tree = with_condition(RUNNING, "gang", "Waiting", "True", 9, "GangTooLarge")
    event = an_event(9.6, "GangTooLarge", GANG, "too large", type="Warning", count=3)
    found = timeline(with_update(tree, 20, 25), [
        event, an_event(20.1, "UpdateStarted"), an_event(25.3, "UpdateFinished"),
    ])  # fmt: skip
    assert rows(found) == [
        ("placement", "GangTooLarge", "event"),
        ("rollout", "UpdateStarted", "event"),
        ("rollout", "UpdateFinished", "event"),
    ]
    assert (found.entries[1].message, found.entries[1].count) == ("too large", 3)


def test_same_event_of_another_time_or_object_is_an_entry():
    tree = with_condition(RUNNING, "gang", "Waiting", "True", 900, "GangTooLarge")
    found = timeline(tree, [
        an_event(9, "GangTooLarge", GANG, type="Warning"),
        an_event(903, "GangTooLarge", ("PodGang", "demo-0-model-0"), type="Warning"),
    ])  # fmt: skip
    assert [each.about.name for each in found.entries[1:]] == ["demo-0", "demo-0", "demo-0-model-0"]


def test_termination_record_and_its_event_are_one_entry():
    tree = with_records(RUNNING, f'{{"demo-0": {{"at": "{at(60)}", "count": 2}}}}')
    assert rows(timeline(tree, [])) == [("recovery", "Gang termination", "condition")]
    message = "demo-0 is restarted: demo-0-router was below minAvailable for 60 s"
    event = an_event(60.2, "PodCliqueSetReplicaDeleteSuccessful", SET, message)
    assert rows(timeline(tree, [event])) == [("recovery", event.reason, "event")]


@pytest.mark.parametrize(
    "text", ["[", '{"demo-0": {"at": "yesterday"}}', '{"demo-0": {"at": 1}}', "[" * 5000]
)
def test_record_that_cannot_be_read_is_left_out(text):
    assert rows(timeline(with_records(RUNNING, text), [])) == []


def test_what_follows_belongs_to_the_phase_in_which_it_happens():
    pod = ("Pod", PODS[0].metadata.name)
    created = f"Created pod {PODS[0].metadata.name}"
    tree = with_condition(with_update(RUNNING, 100, 130), "gang", "Ready", "True", 300)
    found = timeline(tree, [
        an_event(1, "Started", pod), an_event(100, "UpdateStarted"),
        an_event(110, "PodCreateSuccessful", CLIQUE, f"{created} in place of another"),
        an_event(120, "Started", pod), an_event(130, "UpdateFinished"),
        an_event(200, "PodCreateSuccessful", CLIQUE, created), an_event(210, "Started", pod),
    ])  # fmt: skip
    assert [(kind, title) for kind, title, _ in rows(found)] == [
        ("start", "Started"),
        ("rollout", "UpdateStarted"),
        ("rollout", "PodCreateSuccessful"),
        ("rollout", "Started"),
        ("rollout", "UpdateFinished"),
        ("recovery", "PodCreateSuccessful"),
        ("recovery", "Started"),
        ("recovery", "Ready"),
    ]


def test_pod_above_the_replicas_of_the_template_was_scaled_out():
    pod = PODS[0]
    labelled = {**pod.metadata.labels, "grove.io/podclique-pod-index": "7"}
    grown = replace(pod, metadata=replace(pod.metadata, labels=labelled))
    others = tuple(each for each in RUNNING.pods if each is not pod)
    created = an_event(900, "PodCreateSuccessful", CLIQUE, f"Created pod {pod.metadata.name}")
    found = timeline(replace(RUNNING, pods=(grown, *others)), [created])
    assert rows(found) == [("scaling", "PodCreateSuccessful", "event")]


def test_gang_that_is_created_later_was_scaled_out():
    gang = RUNNING.gangs[1]
    late = replace(gang, metadata=replace(gang.metadata, creation_timestamp=at(900)))
    found = timeline(replace(RUNNING, gangs=(RUNNING.gangs[0], late)), [])
    assert rows(found) == [("scaling", "PodGang created", "condition")]


def test_same_event_of_many_pods_is_one_entry():
    events = [an_event(3 + i / 10, "Scheduled", ("Pod", f"demo-0-router-{i}"), f"to n{i}") for i in range(9)]
    found = timeline(RUNNING, events)
    (entry,) = found.entries[1:]
    assert (entry.kind, entry.count, entry.time) == ("placement", 9, exactly(3))
    assert entry.message == "demo-0-router-0, demo-0-router-1, demo-0-router-2 and 6 more: to n0 (and 8 more)"


def test_what_is_ready_in_the_second_of_its_cause_comes_after_it():
    tree = with_condition(RUNNING, "gang", "Ready", "True", 60)
    tree = with_condition(tree, "gang", "Scheduled", "True", 60)
    found = timeline(tree, [an_event(60.7, "UpdateStarted")])
    assert [each.title for each in found.entries[1:]] == ["UpdateStarted", "Scheduled", "Ready"]


def test_long_time_line_leaves_out_events_of_others_first():
    many = timing.TIMELINE_ENTRIES + 50
    events = [an_event(60.0 * i, "Pulled", ("Pod", f"demo-0-router-{i}")) for i in range(many)]
    found = timeline(RUNNING, [an_event(1, "UpdateStarted"), *events, an_event(2, "BackOff", type="Warning")])
    assert len(found.entries) == timing.TIMELINE_ENTRIES
    assert found.left_out == many + 3 - timing.TIMELINE_ENTRIES
    assert {"Created", "UpdateStarted", "BackOff"} <= {each.title for each in found.entries}
    assert found.entries[-1].about.name == f"demo-0-router-{many - 1}", "the latest of them stay"
    times = [each.time for each in found.entries]
    assert times == sorted(times)


def test_events_of_an_earlier_set_of_the_name_are_left_out():
    found = timeline(RUNNING, [
        an_event(-300, "PodCliqueSetReplicaDeleteSuccessful"),
        an_event(-0.5, "Killing", ("Pod", PODS[0].metadata.name)),
        an_event(-1, "Scaled", ("DynamoGraphDeployment", "graph")),
        an_event(0.5, "Recovered"),
    ])  # fmt: skip
    assert [each.title for each in found.entries] == ["Scaled", "Created", "Recovered"]
    assert found.left_out == 0


def test_entry_has_all_fields_of_the_contract():
    encoded = msgspec.to_builtins(timeline(RUNNING, [an_event(1, "Recovered")]).entries[-1])
    assert set(encoded) == {"time", "kind", "severity", "about", "title", "message", "count", "source"}


def test_same_event_in_another_phase_is_an_entry():
    pod = ("Pod", "demo-0-router-1")
    found = timeline(RUNNING, [
        an_event(1, "Scheduled", pod), an_event(2, "UpdateStarted"), an_event(3, "Scheduled", pod),
    ])  # fmt: skip
    assert [each.title for each in found.entries[1:]] == ["Scheduled", "UpdateStarted", "Scheduled"]


def test_event_that_replaces_a_condition_keeps_its_exact_time():
    tree = with_update(RUNNING, 20)
    found = timeline(tree, [an_event(20.2, "Scheduled", ("Pod", "p-1")), an_event(20.7, "UpdateStarted")])
    assert [each.title for each in found.entries[1:]] == ["Scheduled", "UpdateStarted"]
