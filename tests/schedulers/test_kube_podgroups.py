"""The PodGroups of Kubernetes 1.36 and 1.37: their names, specs, and what changes them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.types.pod import LivePodSpec, Pod, SchedulingGroup
from grove.schedulers.backend import GangRequest, SchedulerObject, UnsupportedGang
from grove.schedulers.kube_podgroups import V1Alpha2, V1Beta1
from tests.plan.builders import a_clique
from tests.schedulers.builders import RACK, ZONE, a_body, a_request, requests
from tests.topology.builders import a_topology

ALPHA, BETA = V1Alpha2(), V1Beta1()


def terms(minimum: int, key: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    return {**spec, "schedulingConstraints": {"topology": [{"key": key}]}} if key else spec


def a_pod(group: str, node: str = "") -> Pod:
    return Pod(ObjectMeta("p"), LivePodSpec(node_name=node, scheduling_group=SchedulingGroup(group)))


def a_group(minimum: int, key: str = "", **spec: Any) -> SchedulerObject:
    return SchedulerObject(ObjectMeta("g"), {**terms(minimum, key), **spec})


@pytest.mark.parametrize("version", [ALPHA, BETA])
def test_new_group_is_named_by_hash_of_its_terms(version):
    body = a_body("a:2", "", "rack")
    (other,) = requests(body, a_topology("zone host")).values()
    name = version.name(a_request(body))
    assert name == version.name(a_request(body)) != version.name(other)
    assert name == ALPHA.name(a_request(body)), "an upgrade of Kubernetes changes no name"
    assert len(name) == len("wl-0-") + 8


def test_alpha_group_is_immutable():
    request = a_request(a_body("a:2"))
    assert ALPHA.spec(request) == terms(2)
    assert ALPHA.spec(replace(request, found=a_group(3))) is None


def test_beta_group_has_priority_and_disruption_mode():
    request = a_request(a_body("a:2", "", "zone", priorityClassName="high"))
    assert BETA.spec(request) == {
        **terms(2, ZONE),
        "priorityClassName": "high",
        "disruptionMode": {"all": {}},
    }
    surplus = a_request(a_body("a:3/2"))
    assert BETA.spec(surplus) == {**terms(2), "disruptionMode": {"single": {}}}


def test_minimum_of_beta_group_is_changed_and_nothing_else():
    request = a_request(a_body("a:2", priorityClassName="high"))
    stored = {"priority": 7, "priorityClassName": "low", "disruptionMode": {"single": {}}}
    assert BETA.spec(replace(request, found=a_group(5, ZONE, **stored))) == {**terms(2, ZONE), **stored}


NAMES = [
    # pods as group/node, existing groups; the group of a gang with the minimum 2 in one rack
    ("", {}, "(hash)"),
    ("", {"x": a_group(5, RACK)}, "x"),
    ("", {"x": a_group(2, ZONE)}, "(hash)"),
    ("", {"x": a_group(2)}, "(hash)"),
    ("", {"x": a_group(2, RACK, priorityClassName="high")}, "(hash)"),
    ("y/n1 x/n1 x/n2", {"x": a_group(5, RACK), "y": a_group(2, RACK)}, "x"),
    ("(hash)/n1", {}, "(hash)"),
    ("(hash)/n1", {"x": a_group(2, RACK)}, "(hash)"),
    ("x/n1", {}, "(hash)"),
    ("x/n1 x/", {}, "x"),
    ("x/n1 x/", {"y": a_group(2, RACK)}, "x"),
]


@pytest.mark.parametrize(("pods", "groups", "expected"), NAMES)
def test_beta_group_of_living_pods_is_kept(pods, groups, expected):
    request = a_request(a_body("a:2", "", "rack"))
    hashed = ALPHA.name(request)
    named = [a_pod(*each.replace("(hash)", hashed).split("/")) for each in pods.split()]
    name = BETA.name(replace(request, pods=tuple(named), objects=groups))
    assert name == expected.replace("(hash)", hashed)


def test_beta_group_with_priority_keeps_name_after_upgrade():
    request = a_request(a_body("a:2", priorityClassName="high"))
    before = ALPHA.name(request)
    assert BETA.name(request) != before, "a group of another priority has another name"
    assert BETA.name(replace(request, pods=(a_pod(before, "n1"),))) == before


def prioritized(of_set: str, *of_cliques: str) -> GangRequest:
    body = a_body("a b", **({"priorityClassName": of_set} if of_set else {}))
    options = [{"priorityClassName": name} if name else {} for name in of_cliques]
    cliques = [a_clique(name, **extra) for name, extra in zip(("a", "b"), options, strict=True)]
    body["spec"]["template"]["cliques"] = cliques
    return a_request(body)


@pytest.mark.parametrize(
    ("of_set", "of_cliques", "expected"),
    [
        ("", ("", ""), ""),
        ("", ("low", "low"), "low"),
        ("high", ("", "high"), "high"),
        ("high", ("", ""), "high"),
    ],
)
def test_priority_of_group_is_that_of_its_pods(of_set, of_cliques, expected):
    request = prioritized(of_set, *of_cliques)
    assert BETA.spec(request).get("priorityClassName", "") == expected


@pytest.mark.parametrize(
    ("of_set", "of_cliques", "named"),
    [
        ("", ("low", ""), "(none), low"),
        ("", ("low", "high"), "high, low"),
        ("high", ("low", ""), "low in its"),
    ],
)
def test_pods_of_two_priorities_are_unsupported(of_set, of_cliques, named):
    request = prioritized(of_set, *of_cliques)
    with pytest.raises(UnsupportedGang, match="one priority") as refused:
        BETA.name(request)
    assert named in str(refused.value)
    assert ALPHA.spec(request) == terms(2)
