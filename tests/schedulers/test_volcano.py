"""The Volcano backend: PodGroups, pod additions, waiting reasons and CRD check; and the LPX backend."""

from __future__ import annotations

import pytest
import yaml
from msgspec.structs import replace

from grove.schedulers.backend import with_pod_additions
from grove.schedulers.lpx import Lpx
from grove.schedulers.volcano import Volcano, podgroup_crd_problem
from tests.schedulers.builders import a_body, a_request, as_found, requests, scheduling_spec, with_status
from tests.shared import shared_data

VOLCANO = Volcano()


def policy(name: str, size: int):
    return {
        "name": name,
        "labelSelector": {"matchLabels": {"grove.io/podclique": name}},
        "matchLabelKeys": ["grove.io/podclique"],
        "subGroupSize": size,
        "minSubGroups": 1,
    }


def test_pod_group_of_gang_has_all_fields():
    request = a_request(a_body("a:2 b:3/1", priorityClassName="high"))
    assert VOLCANO.gang_object(request) == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "wl-0",
            "namespace": "ns",
            "labels": request.gang["metadata"]["labels"],
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
            "minMember": 3,
            "queue": "team-a",
            "priorityClassName": "high",
            "subGroupPolicy": [policy("wl-0-a", 2), policy("wl-0-b", 1)],
        },
    }


def test_queue_defaults_and_can_come_from_a_clique():
    for request in requests(a_body("a b", "x:2/1=b", queue="")).values():
        assert VOLCANO.gang_object(request)["spec"]["queue"] == "default"
    body = a_body("a b", queue="")
    body["spec"]["template"]["cliques"][0]["annotations"] = {
        "scheduling.grove.io/volcano-queue": " of-clique "
    }
    assert VOLCANO.gang_object(a_request(body))["spec"]["queue"] == "of-clique"


def test_gang_with_zero_minimum_keeps_earlier_spec():
    request = a_request(a_body("a:2"))
    live = as_found(VOLCANO.gang_object(request))
    for group in request.gang["spec"]["podgroups"]:
        group["minReplicas"] = 0
    assert VOLCANO.gang_object(replace(request, found=live))["spec"] == live.spec
    fresh = VOLCANO.gang_object(request)["spec"]
    assert (fresh["minMember"], fresh["subGroupPolicy"]) == (1, [policy("wl-0-a", 1)])


def test_pod_has_both_group_annotations():
    pod = with_pod_additions(
        {"metadata": {}, "spec": {}}, VOLCANO.pod_additions(a_request(a_body("a")).gang, "wl-0-a", "wl-0")
    )
    assert pod["metadata"]["annotations"] == {
        "scheduling.volcano.sh/group-name": "wl-0",
        "scheduling.k8s.io/group-name": "wl-0",
    }


@pytest.mark.parametrize("backend", [VOLCANO, Lpx()])
@pytest.mark.parametrize(
    ("wishes", "part"),
    [("rack", "the PodCliqueSet"), ("x:rack", "scaling group x"), ("a:/rack", "clique a")],
)
def test_topology_constraints_are_rejected(backend, wishes, part):
    problems = list(backend.unsupported_constraints(scheduling_spec(a_body("a b", "x:1=b", wishes))))
    assert any(part in problem for problem in problems), problems
    assert list(backend.unsupported_constraints(scheduling_spec(a_body("a b", "x:1=b")))) == []


def test_conflicting_queues_are_rejected():
    body = a_body("a b")
    body["spec"]["template"]["cliques"][1]["annotations"] = {"scheduling.grove.io/volcano-queue": "other"}
    (wrong,) = VOLCANO.unschedulable_reasons(scheduling_spec(body))
    assert "team-a on the PodCliqueSet but other" in wrong


def test_crd_without_subgroups_is_reported():
    text = shared_data("crds/volcano/scheduling.volcano.sh_podgroups.yaml").read_text()
    definition = yaml.load(text, Loader=yaml.CSafeLoader)
    assert podgroup_crd_problem(definition) == ""
    assert "install Volcano 1.14" in podgroup_crd_problem(None)
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del schema["subGroupPolicy"]
    assert podgroup_crd_problem(definition).endswith(
        "is not in the installed CRD: install Volcano 1.14 or later"
    )
    version["served"] = False
    assert podgroup_crd_problem(definition).endswith("is not served: install Volcano 1.14 or later")


UNPLACED = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "3/3 tasks"}
PLACED = {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled"}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({}, ""),
        ({"phase": "Pending"}, "not admitted to queue team-a yet"),
        ({"phase": "Pending", "conditions": [UNPLACED]}, "not admitted to queue team-a yet: 3/3 tasks"),
        ({"phase": "Inqueue"}, ""),
        ({"phase": "Inqueue", "conditions": None}, ""),
        ({"phase": "Inqueue", "conditions": [UNPLACED]}, "3/3 tasks"),
        ({"phase": "Unknown", "conditions": [PLACED, UNPLACED], "running": 2}, "3/3 tasks"),
        ({"phase": "Running", "conditions": [PLACED]}, ""),
        ({"phase": "Running", "conditions": [{**UNPLACED, "status": "False"}, PLACED]}, ""),
    ],
)
def test_waiting_reason_from_status(status, message):
    pod_group = VOLCANO.gang_object(a_request(a_body("a:3")))
    assert VOLCANO.waiting_reason(with_status(pod_group, status)) == message


def test_lpx_needs_no_object_and_no_additions():
    request = a_request(a_body("a"))
    lpx = Lpx()
    assert lpx.gang_object_kind is None
    assert lpx.gang_object(request) is None
    assert with_pod_additions(
        {"metadata": {}, "spec": {}}, lpx.pod_additions(request.gang, "wl-0-a", "wl-0")
    ) == {
        "metadata": {},
        "spec": {},
    }
