"""The state of a rollout, from the status of its set."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grove.cli.views.actions.rollout_view import restart_of_graph, rollout_line, rollout_view
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.plan.desired.template_hash import generation_hash
from tests.plan.builders import a_set, read_set

STARTED = {"updateStartedAt": "2027-01-15T08:00:00Z"}
COUNTS = {
    "updatedPodCliquesCount": 1,
    "totalPodCliquesCount": 2,
    "updatedPodCliqueScalingGroupsCount": 0,
    "totalPodCliqueScalingGroupsCount": 1,
}
RUNNING = {**STARTED, **COUNTS, "currentlyUpdating": [{"replicaIndex": 1}]}
ENDED = {**STARTED, "updateEndedAt": "2027-01-15T08:05:00Z"}
OVERDUE = {
    "type": "UpdateInProgress",
    "status": "Unknown",
    "reason": "ProgressDeadlineExceeded",
    "message": "1 of 2 cliques and groups that are being updated exceeded progressDeadline",
    "lastTransitionTime": "2027-01-15T08:00:00Z",
}
ERROR = {"code": "ERR_CREATE_POD", "description": "quota", "observedAt": "2027-01-15T08:00:00Z"}
ALL = {"updatedReplicas": 2, "availableReplicas": 2}


def view_of(status: dict[str, Any], strategy: dict[str, Any] | None = None, **metadata: Any) -> Any:
    body = a_set("a:1 b:1", replicas=2, name="chat")
    body["metadata"] |= {"generation": 3, **metadata}
    body["spec"]["updateStrategy"] = strategy or {}
    hash_ = generation_hash(read_set(body))
    body["status"] = {"observedGeneration": 3, "currentGenerationHash": hash_, **status}
    return rollout_view(read_set(body))


@pytest.mark.parametrize(
    ("status", "strategy", "phase", "line"),
    [
        (ALL, {}, "Complete", "rolled out, 2 of 2 replicas are available"),
        ({**ALL, "updateProgress": ENDED}, {}, "Complete", "rolled out, 2 of 2 replicas are available"),
        (
            {"updateProgress": RUNNING, "updatedReplicas": 1},
            {},
            "Progressing",
            "replica 1 is being updated; 1 of 2 replicas, 1 of 2 cliques, 0 of 1 groups are updated",
        ),
        (
            {"updateProgress": RUNNING},
            {"paused": True},
            "Paused",
            "paused: grove rollout resume chat continues it; replica 1 is being updated; "
            "0 of 2 replicas, 1 of 2 cliques, 0 of 1 groups are updated",
        ),
        (
            {"updateProgress": {**STARTED}, "conditions": [OVERDUE]},
            {},
            "ProgressDeadlineExceeded",
            f"{OVERDUE['message']}; 0 of 2 replicas are updated",
        ),
        (
            {"updatedReplicas": 1, "availableReplicas": 1, "lastErrors": [ERROR]},
            {},
            "Waiting",
            "1 of 2 replicas are available: grove explain chat says what the others wait for; "
            "ERR_CREATE_POD: quota",
        ),
        (
            {"updatedReplicas": 1, "availableReplicas": 2},
            {},
            "Waiting",
            "1 of 2 replicas are updated: grove explain chat says what the others wait for",
        ),
        (
            {**ALL, "observedGeneration": 2},
            {},
            "NotObserved",
            "the operator has not seen the latest change yet",
        ),
        (
            {**ALL, "currentGenerationHash": ""},
            {},
            "NotObserved",
            "the operator has not seen the latest change yet",
        ),
        ({**ALL, "currentGenerationHash": "upstream"}, {}, "Complete",
         "rolled out, 2 of 2 replicas are available"),
        (
            {"updatedReplicas": 1},
            {"type": "OnDelete"},
            "OnDelete",
            "strategy OnDelete: pods are updated when they are deleted; 1 of 2 replicas are updated",
        ),
    ],
)  # fmt: skip
def test_phase_and_line_of_a_rollout(status, strategy, phase, line):
    view = view_of(status, strategy)
    assert view.phase == phase
    assert rollout_line(view) == f"PodCliqueSet chat: {line}"


def test_requested_restart_is_not_observed_before_its_hash():
    assert view_of(ALL).complete
    body = a_set("a:1", replicas=1)
    before = generation_hash(read_set(body))
    body["metadata"]["annotations"] = {"grove.io/restart-all": "1"}
    body["status"] = {"currentGenerationHash": before, "updatedReplicas": 1, "availableReplicas": 1}
    assert rollout_view(read_set(body)).phase == "NotObserved"


def test_set_that_is_being_deleted_is_not_waited_for():
    assert view_of(ALL, deletionTimestamp="2027-01-15T08:00:00Z").phase == "Deleted"


@pytest.mark.parametrize(
    ("graph", "phase"),
    [
        ({}, "Complete"),
        ({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}, "NotObserved"),
        ({"spec": {"restart": {"id": "2"}}}, "Progressing"),
        (
            {
                "spec": {"restart": {"id": "2"}},
                "status": {"restart": {"observedID": "1", "phase": "Completed"}},
            },
            "Progressing",
        ),
        (
            {
                "spec": {"restart": {"id": "2"}},
                "status": {"restart": {"observedID": "2", "phase": "Completed"}},
            },
            "Complete",
        ),
    ],
)
def test_restart_of_graph_is_complete_after_all_components(graph, phase):
    found = msgspec.convert(graph, type=DynamoGraphDeployment)
    assert restart_of_graph(view_of(ALL), found).phase == phase
