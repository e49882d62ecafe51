"""From objects to views: which object belongs to which, and how pods are counted."""

from __future__ import annotations

import re

import msgspec
import pytest

from grove.api.naming import well_known
from grove.api.types.pod import Pod
from grove.views.claim_view import ClaimView
from grove.views.operator_view import OperatorView
from grove.views.pod_reason import ReasonedPod, pod_reason
from grove.views.set_view import (
    CliqueView,
    GangView,
    GroupReplicaView,
    GroupView,
    PodView,
    ReplicaView,
    SetView,
    pod_state,
    set_views,
)
from grove.views.topology_view import TopologyView
from tests.plan.builders import Body
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator
from tests.shared import ROOT
from tests.views.builders import NOW, a_simulator, found, set_status, view


def test_view_of_complete_set():
    seen = view(a_simulator())
    assert (seen.available, seen.replicas, seen.ready) == (1, 1, True)
    (replica,) = seen.members
    assert [(gang.name, gang.phase, gang.pods) for gang in replica.gangs] == [
        ("demo-0", "Running", 4),
        ("demo-0-model-0", "Running", 1),
    ]
    (router,) = replica.cliques
    assert (router.name, router.ready, router.replicas, router.needed) == ("demo-0-router", 3, 3, 2)
    assert [pod.state for pod in router.pods] == ["ready"] * 3
    (model,) = replica.groups
    assert (model.available, model.replicas, model.needed) == (2, 2, 1)
    assert [(member.index, member.gang) for member in model.members] == [(0, "demo-0"), (1, "demo-0-model-0")]
    assert [clique.name for member in model.members for clique in member.cliques] == [
        "demo-0-model-0-leader",
        "demo-0-model-1-leader",
    ]


def with_status(sim: Simulator, gang: str, status: Body) -> SetView:
    sim.api.patch("PodGang", gang, {"status": status}, status=True)
    return view(sim)


def scheduled(reason: str, message: str, status: str = "False") -> Body:
    condition = {"type": "Scheduled", "status": status, "reason": reason, "message": message}
    return {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (
            scheduled("PodGroupsNotScheduled", "Too few pods; no place now: a; b"),
            "no place now: a; b",
        ),
        (scheduled("PodGroupsNotScheduled", "Too few pods"), ""),
        (scheduled("OneMemberPodPerNode", "one pod a node; add nodes"), "one pod a node; add nodes"),
        (scheduled("AllPodGroupsScheduled", "Every clique; has pods", "True"), ""),
    ],
)
def test_gang_view_says_why_the_gang_waits(condition: Body, why: str):
    seen = with_status(a_simulator(), "demo-0", condition)
    assert [gang.why for gang in seen.gangs] == [why, ""]


def test_gang_view_has_the_domains_of_its_status():
    unit = {"name": "demo-0", "topologyKey": "example.com/rack", "domain": "r1"}
    seen = with_status(a_simulator(), "demo-0", {"placement": {"units": [unit]}})
    assert [gang.domains for gang in seen.gangs] == [{"demo-0": "rack r1"}, {}]


def test_set_is_settled_when_gangs_run_or_say_why_they_wait():
    sim = a_simulator()
    assert view(sim).settled
    assert not with_status(sim, "demo-0-model-0", {"phase": "Pending"}).settled
    waits = scheduled("PodGroupsNotScheduled", "Too few pods; no place now")
    assert not with_status(sim, "demo-0-model-0", waits).settled, "available, and does not run"
    set_status(sim, {"availableReplicas": 0})
    assert view(sim).settled
    assert not view(a_simulator(running=False)).settled


def test_terminating_pod_is_shown_and_not_counted():
    sim = a_simulator()
    actors.delete(sim, next(iter(sim.pods("demo-0-router"))))
    seen = view(sim)
    assert seen.cliques[0].ready == 2
    assert sorted(pod.state for pod in seen.cliques[0].pods) == ["ready", "ready", "terminating"]
    assert not seen.ready


@pytest.mark.parametrize("missing", ["PodGang", "PodClique", "PodCliqueScalingGroup"])
def test_set_is_not_ready_while_objects_are_missing(missing):
    sim = a_simulator()
    name = sorted(sim.api.all(missing))[-1]
    if missing == "PodClique":
        sim.scale(missing, name, 2)
    elif missing == "PodGang":
        sim.api.patch(missing, name, {"status": {"phase": "Starting"}}, status=True)
    else:
        sim.api.patch(missing, name, {"status": {"availableReplicas": 1}}, status=True)
    assert not view(sim).ready


def test_errors_of_set_are_in_view():
    sim = a_simulator()
    error = {"code": "ERR", "description": "no quota", "observedAt": "2026-01-01T00:00:00Z"}
    set_status(sim, {"lastErrors": [error]})
    assert view(sim).errors == ("no quota",)


@pytest.mark.parametrize(
    ("constraint", "condition", "expected"),
    [
        (None, None, None),
        ({"topologyName": "local", "pack": {"required": "rack"}}, None, TopologyView("local", "rack")),
        (
            {"topologyName": "local"},
            ("True", "ClusterTopologyNotFound", "no ClusterTopology local"),
            TopologyView("local", "", "no ClusterTopology local"),
        ),
        (
            {"packDomain": "rack"},
            ("Unknown", "TopologyNameMissing", ""),
            TopologyView("", "rack", "TopologyNameMissing"),
        ),
        (
            {"topologyName": "local"},
            ("False", "AllClusterTopologyLevelsAvailable", "all levels"),
            TopologyView("local"),
        ),
    ],
    ids=["none", "required", "not found", "no name", "available"],
)
def test_topology_of_a_set(constraint: Body | None, condition: tuple[str, str, str] | None, expected):
    sim = a_simulator()
    if constraint is not None:
        sim.api.patch(
            "PodCliqueSet", sim.set_name, {"spec": {"template": {"topologyConstraint": constraint}}}
        )
    if condition is not None:
        status, reason, message = condition
        body = {"type": "TopologyLevelsUnavailable", "status": status, "reason": reason, "message": message}
        set_status(sim, {"conditions": [{**body, "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    seen = view(sim)
    assert seen.topology == expected
    assert seen.all_errors == ((expected.problem,) if expected is not None and expected.problem else ())


def test_date_and_age_of_a_set():
    sim = a_simulator()
    sim.api.patch("PodCliqueSet", sim.set_name, {"metadata": {"creationTimestamp": "2027-01-15T07:59:18Z"}})
    assert (view(sim).created, view(sim).age_seconds) == ("2027-01-15T07:59:18Z", 42)


def test_view_of_set_without_children():
    sim = a_simulator(running=False)
    only = msgspec.structs.replace(found(sim), groups=(), cliques=(), gangs=(), pods=())
    (seen,) = set_views(only, NOW)
    assert (seen.members, seen.available, seen.replicas) == ((), 0, 1)


READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("spec", "status", "word"),
    [
        ({"schedulingGates": [{"name": well_known.GANG_GATE}]}, {"phase": "Pending"}, "gated"),
        ({}, {"phase": "Pending"}, "unscheduled"),
        ({"nodeName": "n"}, {"phase": "Pending"}, "starting"),
        ({"nodeName": "n"}, {"phase": "Running", "conditions": READY}, "ready"),
        ({"nodeName": "n"}, {"phase": "Failed"}, "failed"),
        ({"nodeName": "n"}, {"phase": "Succeeded"}, "succeeded"),
        (
            {"nodeName": "n"},
            {"phase": "Running", "containerStatuses": [{"lastState": {"terminated": {"exitCode": 1}}}]},
            "failing",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_pod_state(spec: Body, status: Body, word: str):
    body = {"metadata": {"name": "p"}, "spec": spec, "status": status}
    assert pod_state(msgspec.json.decode(msgspec.json.encode(body), type=Pod)) == word


WAITING = {"name": "m", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
INITIALIZING = {"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}


@pytest.mark.parametrize(
    ("spec", "status", "why"),
    [
        ({}, {}, ""),
        ({"schedulerName": "kai"}, {}, "kai has not considered it yet"),
        ({}, {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no\nroom"}]}, "no room"),
        ({"nodeName": "n"}, {"containerStatuses": [INITIALIZING, WAITING]}, "m: ImagePullBackOff"),
        ({"nodeName": "n"}, {"initContainerStatuses": [WAITING]}, "m: ImagePullBackOff"),
        ({"nodeName": "n"}, {"containerStatuses": [INITIALIZING]}, ""),
        ({"nodeName": "n"}, {"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        (
            {"nodeName": "n"},
            {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [WAITING]},
            "",
        ),
    ],
)
def test_pod_reason(spec: Body, status: Body, why: str):
    conditions = [*status.get("conditions", ())]
    if "nodeName" in spec:
        conditions.append({"type": "PodScheduled", "status": "True", "message": "long ago"})
    body = {"metadata": {"name": "p"}, "spec": spec, "status": {**status, "conditions": conditions}}
    pod = msgspec.json.decode(msgspec.json.encode(body), type=ReasonedPod)
    assert pod_reason(pod, pod_state(pod)) == why


def test_docs_name_every_field_and_state():
    page = (ROOT / "docs/looking.md").read_text()
    rows = re.findall(r"^\| (?:a|its|the) \w+ \| (.+) \|$", page, re.MULTILINE)
    views = (SetView, TopologyView, ReplicaView, GangView, GroupView, GroupReplicaView, CliqueView, PodView)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == [
        [field.encode_name for field in msgspec.structs.fields(view)]
        for view in (*views, ClaimView, OperatorView)
    ]
    states = re.findall(r"`(\w+)`", page.partition("## What a pod does")[2].partition("## ")[0])
    source = (ROOT / "src/grove/views/set_view.py").read_text().partition("def pod_state")[2]
    named = set(re.findall(r'"([a-z]+)"', source.partition("\ndef ")[0]))
    assert set(states) == named | {"failed", "succeeded"}
