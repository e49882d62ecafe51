"""The KAI backend: PodGroups, pod additions and waiting reasons."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.schedulers.backend import PodAdditions, UnsupportedGang, with_pod_additions
from grove.schedulers.kai import Kai
from tests.schedulers.builders import (
    HOST,
    RACK,
    ZONE,
    a_body,
    a_request,
    as_found,
    requests,
    scheduling_spec,
    with_status,
)

KAI = Kai()


def required(key: str) -> dict[str, str]:
    return {"topology": "kt", "requiredTopologyLevel": key}


def test_pod_group_of_base_gang_has_all_fields():
    body = a_body("a:2 b:3/2 c", "x:2/2=b,c", "zone/rack x:rack b:/host", priorityClassName="high")
    request = requests(body)["wl-0"]
    pod_group = KAI.gang_object(request)
    assert pod_group is not None
    carried = request.gang["metadata"]["labels"]
    assert carried["kai.scheduler/queue"] == "team-a"
    assert pod_group == {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {
            "name": "wl-0",
            "namespace": "ns",
            "labels": carried,
            "annotations": {
                "scheduling.grove.io/volcano-queue": "team-a",
                "note": "mine",
                "grove.io/topology-name": "racks",
            },
            "ownerReferences": [
                {
                    "apiVersion": "scheduler.grove.io/v1alpha1",
                    "kind": "PodGang",
                    "name": "wl-0",
                    "uid": "uid-wl-0",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "minMember": 8,
            "queue": "team-a",
            "priorityClassName": "high",
            "topologyConstraint": {**required(ZONE), "preferredTopologyLevel": RACK},
            "subGroups": [
                {"name": "wl-0-x-0", "minSubGroup": 2, "topologyConstraint": required(RACK)},
                {"name": "wl-0-x-1", "minSubGroup": 2, "topologyConstraint": required(RACK)},
                {"name": "wl-0-a", "minMember": 2},
                _leaf("wl-0-x-0-b", 2, "wl-0-x-0", preferred=HOST),
                _leaf("wl-0-x-0-c", 1, "wl-0-x-0"),
                _leaf("wl-0-x-1-b", 2, "wl-0-x-1", preferred=HOST),
                _leaf("wl-0-x-1-c", 1, "wl-0-x-1"),
            ],
        },
    }


def _leaf(name: str, minimum: int, parent: str, preferred: str = "") -> dict[str, Any]:
    leaf: dict[str, Any] = {"name": name, "minMember": minimum, "parent": parent}
    if preferred:
        leaf["topologyConstraint"] = {"topology": "kt", "preferredTopologyLevel": preferred}
    return leaf


def test_scaled_gang_has_constraint_of_its_group():
    pod_group = KAI.gang_object(requests(a_body("a b", "x:2/1=b", "zone x:rack b:host"))["wl-0-x-0"])
    assert pod_group["spec"] == {
        "minMember": 1,
        "queue": "team-a",
        "topologyConstraint": required(RACK),
        "subGroups": [{"name": "wl-0-x-1-b", "minMember": 1, "topologyConstraint": required(HOST)}],
    }


def test_gang_without_constraints_needs_no_topology():
    request = replace(a_request(a_body("a:2 b")), topology="")
    assert KAI.gang_object(request)["spec"] == {
        "minMember": 3,
        "queue": "team-a",
        "topologyConstraint": {},
        "subGroups": [{"name": "wl-0-a", "minMember": 2}, {"name": "wl-0-b", "minMember": 1}],
    }


def test_constraint_without_topology_is_unsupported():
    request = replace(a_request(a_body("a", "", "rack")), topology="")
    with pytest.raises(UnsupportedGang, match="names no topology"):
        KAI.gang_object(request)
    request.gang["metadata"]["annotations"]["kai.scheduler/topology"] = "foreign"
    assert KAI.gang_object(request)["spec"]["topologyConstraint"]["topology"] == "foreign"


def test_fields_written_by_kai_and_others_are_kept():
    request = a_request(a_body("a:2"))
    live = as_found(
        KAI.gang_object(request),
        queue="moved-to",
        markUnschedulable=True,
        schedulingBackoff=3,
        minMember=99,
        preemptibility="preemptible",
    )
    foreign = {"kai.scheduler/node-pool": "pool", "kai.scheduler/queue": "moved-to", "foreign": "kept"}
    meta = replace(live.metadata, labels={**live.metadata.labels, **foreign}, annotations={"also": "kept"})
    pod_group = KAI.gang_object(replace(request, found=replace(live, metadata=meta)))
    assert pod_group["metadata"]["labels"] == {**request.gang["metadata"]["labels"], **foreign}
    assert pod_group["metadata"]["annotations"] == {"also": "kept", **request.gang["metadata"]["annotations"]}
    assert pod_group["spec"] == {
        "minMember": 2,
        "queue": "moved-to",
        "markUnschedulable": True,
        "schedulingBackoff": 3,
        "topologyConstraint": {},
        "subGroups": [{"name": "wl-0-a", "minMember": 2}],
    }


def a_queue_body(own: str, *cliques: str, annotated: bool = False):
    field = "annotations" if annotated else "labels"
    body = a_body(" ".join("ab"[: len(cliques)]), queue="")
    if own:
        body["metadata"][field] = {"kai.scheduler/queue": own}
    for template, queue in zip(body["spec"]["template"]["cliques"], cliques, strict=True):
        if queue:
            template[field] = {"kai.scheduler/queue": queue}
    return body


QUEUES = [
    # the set's, the cliques'; the queue, or why there is none
    ("q", ("", ""), "q", ""),
    ("q", ("q", ""), "q", ""),
    ("", ("q", "q"), "q", ""),
    ("", ("q", ""), "q", ""),
    ("q", ("q", "r"), "", "is q on the PodCliqueSet but r on its cliques"),
    ("", ("q", "r"), "", "different queues in kai.scheduler/queue: q, r"),
    ("", ("", ""), "", "needs a queue"),
]


@pytest.mark.parametrize(("own", "cliques", "queue", "wrong"), QUEUES)
@pytest.mark.parametrize("annotated", [False, True])
def test_queue_from_set_and_cliques_must_agree(own, cliques, queue, wrong, annotated):
    body = a_queue_body(own, *cliques, annotated=annotated)
    reasons = list(KAI.unschedulable_reasons(scheduling_spec(body)))
    if wrong:
        assert len(reasons) == 1
        assert wrong in reasons[0]
        with pytest.raises(UnsupportedGang, match="queue"):
            KAI.gang_object(a_request(body))
    else:
        assert reasons == []
        assert KAI.gang_object(a_request(body))["spec"]["queue"] == queue


def test_pod_names_its_group_and_subgroup():
    additions = KAI.pod_additions(a_request(a_body("a")).gang, "wl-0-a", "wl-0")
    pod = {"metadata": {"name": "p", "labels": {"mine": "1"}}, "spec": {"containers": []}}
    assert with_pod_additions(pod, additions) == {
        "metadata": {
            "name": "p",
            "labels": {"mine": "1", "kai.scheduler/subgroup-name": "wl-0-a"},
            "annotations": {"kai.scheduler/skip-podgrouper": "true", "pod-group-name": "wl-0"},
        },
        "spec": {"containers": []},
    }
    assert with_pod_additions(pod, PodAdditions()) == pod


def unplaced(*reasons: str, **fields: Any) -> dict[str, Any]:
    """A condition as KAI writes it; the message has the reasons in the format of KAI's log."""
    return {
        "type": "UnschedulableOnNodePool",
        "status": "True",
        "nodePool": "default",
        "reason": "Unschedulable",
        "message": "[{PodSchedulingErrors ... <nil>}]",
        "transitionID": "3",
        "reasons": [{"reason": "PodSchedulingErrors", "message": reason} for reason in reasons],
        **fields,
    }


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([], ""),
        ([unplaced("no GPUs")], "no GPUs"),
        ([unplaced("no GPUs", "over the limit", "no GPUs")], "no GPUs; over the limit"),
        ([unplaced("", message="Unable to schedule podgroup")], "Unable to schedule podgroup"),
        ([unplaced(message="Unable to schedule podgroup", reasons=None)], "Unable to schedule podgroup"),
        ([unplaced("no GPUs", nodePool="a100")], "node pool a100: no GPUs"),
        (
            [unplaced("no GPUs", nodePool="a100"), unplaced("no CPUs", nodePool="h100")],
            "node pool h100: no CPUs",
        ),
        ([unplaced("no GPUs", status="False")], ""),
        ([unplaced("no GPUs", type="Other")], ""),
    ],
)
def test_waiting_reason_from_status(conditions, message):
    pod_group = KAI.gang_object(a_request(a_body("a:2")))
    assert pod_group is not None
    assert (
        KAI.waiting_reason(
            with_status(pod_group, {"schedulingConditions": conditions, "resourcesStatus": {}})
        )
        == message
    )


def test_group_without_conditions_has_no_waiting_reason():
    pod_group = KAI.gang_object(a_request(a_body("a:2")))
    assert pod_group is not None
    for status in ({}, {"schedulingConditions": None}):
        assert KAI.waiting_reason(with_status(pod_group, status)) == ""
    assert KAI.waiting_reason(as_found(pod_group)) == ""
