"""States of containers, and events."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.types.podcliqueset import ComputeDomainSummary
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.events import Event
from grove.explanation.history import ContainerPod, container_views, event_views
from grove.explanation.model import ContainerView
from tests.explanation.test_findings import TREE

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
POD = TREE.pods[0].metadata


def containers(*statuses: dict[str, object], pod: str = POD.name) -> list[ContainerView]:
    body = {"metadata": {"name": pod, "namespace": POD.namespace}, "status": {"containerStatuses": statuses}}
    return list(container_views(TREE, [msgspec.convert(body, ContainerPod)]))


def an_event(kind: str, name: str, **more: object) -> Event:
    body = {
        "metadata": {"name": "e", "namespace": POD.namespace, "creationTimestamp": "2027-01-15T07:00:00Z"},
        "regarding": {"kind": kind, "name": name, "namespace": POD.namespace},
        "reason": "Failed",
        "note": "in two\n lines",
        "type": "Warning",
        **more,
    }
    return msgspec.convert(body, Event)


def test_waiting_container_has_reason_and_message():
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    assert containers({"name": "main", "state": state, "restartCount": 2}) == [
        ContainerView(POD.name, "main", "ImagePullBackOff", "no such image", 2)
    ]


def test_failed_container_has_its_exit_code():
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    assert containers({"name": "main", "state": {"running": {}}, "lastState": last}) == [
        ContainerView(POD.name, "main", "exit code 137 (OOMKilled)")
    ]


def test_healthy_and_starting_containers_are_left_out():
    starting = {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}
    last = {"terminated": {"exitCode": 1}}
    recovered = {"name": "side", "ready": True, "state": {"running": {}}, "lastState": last}
    assert containers(starting, recovered) == []


def test_containers_of_other_pods_are_left_out():
    state = {"waiting": {"reason": "ImagePullBackOff"}}
    assert containers({"name": "main", "state": state}, pod="another") == []


def test_events_of_the_subtree_are_sorted_by_time():
    events = [
        an_event("Pod", POD.name, deprecatedLastTimestamp="2027-01-15T07:59:00Z", deprecatedCount=4),
        an_event("PodGang", "demo-0", series={"count": 7, "lastObservedTime": "2027-01-15T07:58:00.5Z"}),
        an_event("PodCliqueSet", "demo"),
        an_event("PodCliqueSet", "another"),
    ]
    found = event_views(TREE, events, NOW)
    assert [(each.about.kind, each.age_seconds, each.count) for each in found] == [
        ("PodCliqueSet", 3600, 1),
        ("PodGang", 119, 7),
        ("Pod", 60, 4),
    ]
    assert found[0].message == "in two lines"


def test_events_of_domains_graphs_and_deleted_pods_are_included():
    workload, clique = TREE.workload, TREE.cliques[0].metadata.name
    assert workload is not None
    domains = (ComputeDomainSummary("demo-0"),)
    graph = DynamoGraphDeployment(metadata=ObjectMeta("graph", POD.namespace))
    tree = replace(
        TREE,
        graph=graph,
        workload=replace(workload, status=replace(workload.status, compute_domains=domains)),
    )
    wanted = [
        ("ComputeDomain", "demo-0"), ("DynamoGraphDeployment", "graph"), ("Pod", f"{clique}-gone1"),
    ]  # fmt: skip
    others = [("ComputeDomain", "demo-1"), ("Pod", f"{clique}-another-gone1"), ("Job", f"{clique}-gone1")]
    found = event_views(tree, [an_event(*each) for each in (*wanted, *others)], NOW)
    assert [(each.about.kind, each.about.name) for each in found] == wanted


def test_events_of_one_second_are_sorted_by_its_fraction():
    events = [
        an_event("PodCliqueSet", "demo", reason="second", eventTime="2027-01-15T07:59:00.500000Z"),
        an_event("PodCliqueSet", "demo", reason="first", deprecatedLastTimestamp="2027-01-15T07:59:00Z"),
    ]
    assert [each.reason for each in event_views(TREE, events, NOW)] == ["first", "second"]


BAD_TIMES = ("0000-01-01T00:00:00Z", "soon", "9999-12-31T23:59:59-23:59", "2027-01-15T25:00:00Z")


@pytest.mark.parametrize("bad", BAD_TIMES)
@pytest.mark.parametrize("field", ["deprecatedLastTimestamp", "eventTime", "series"])
def test_event_with_a_time_that_cannot_be_read_has_another_one(field, bad):
    time = {"count": 2, "lastObservedTime": bad} if field == "series" else bad
    events = [an_event("PodCliqueSet", "demo", **{field: time}), an_event("PodCliqueSet", "demo")]
    assert [each.age_seconds for each in event_views(TREE, events, NOW)] == [3600, 3600]


def test_event_without_any_time_that_can_be_read_comes_first():
    meta = {"name": "e", "namespace": POD.namespace}
    bad = an_event("PodCliqueSet", "demo", metadata=meta, eventTime=BAD_TIMES[0])
    found = event_views(TREE, [an_event("PodCliqueSet", "demo"), bad], NOW)
    assert [(each.time, each.age_seconds) for each in found] == [("", None), ("2027-01-15T07:00:00Z", 3600)]
