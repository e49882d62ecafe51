"""The backend of the default scheduler: PodGroups of Kubernetes and pod additions, with and without gangs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.configuration.default_scheduler import DefaultSchedulerConfig, PlacementMode
from grove.schedulers.backend import UnsupportedGang, with_pod_additions
from grove.schedulers.kube import Kube, with_gang_scheduling
from grove.schedulers.kube_podgroups import V1Alpha2, V1Beta1
from tests.schedulers.builders import (
    HOST,
    RACK,
    ZONE,
    a_body,
    a_request,
    requests,
    scheduling_spec,
    with_status,
)

GANGS = with_gang_scheduling()
(ALPHA,) = GANGS.older_versions
PLAIN = Kube()


@pytest.mark.parametrize(("backend", "version"), [(GANGS, V1Beta1()), (ALPHA, V1Alpha2())])
def test_pod_group_of_gang_has_all_fields(backend, version):
    request = a_request(a_body("a:2 b:3/1", "", "zone"))
    assert backend.gang_object_name(request) == version.name(request)
    assert backend.gang_object(replace(request, name="group")) == {
        "apiVersion": version.kind.api_version,
        "kind": "PodGroup",
        "metadata": {
            "name": "group",
            "namespace": "ns",
            "labels": {**request.gang["metadata"]["labels"], "grove.io/podgang": "wl-0"},
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
        "spec": version.spec(request),
    }


KEYS = [
    # cliques, groups, wishes; the key that applies to all pods of the base gang
    ("a b", "", "", ""),
    ("a b", "", "rack a:host", RACK),
    ("a b", "x:1=a,b", "x:rack", RACK),
    ("a b", "x:1=b", "x:rack", ""),
    ("a", "", "a:host", HOST),
    ("a b", "", "a:host b:host", ""),
    ("a", "", "/rack", ""),
]


@pytest.mark.parametrize(("cliques", "groups", "wishes", "key"), KEYS)
def test_topology_key_applies_to_all_pods(cliques, groups, wishes, key):
    request = requests(a_body(cliques, groups, wishes))["wl-0"]
    assert _group_key(request) == key


def test_no_group_for_zero_minimum_or_without_gangs():
    request = a_request(a_body("a"))
    assert (PLAIN.gang_object_kind, PLAIN.gang_object(request)) == (None, None)
    assert with_pod_additions(
        {"metadata": {}, "spec": {}}, PLAIN.pod_additions(request.gang, "wl-0-a", "")
    ) == {
        "metadata": {},
        "spec": {},
    }
    empty = {**request.gang, "spec": {"podgroups": []}}
    no_pods = replace(request, gang=empty)
    assert (GANGS.gang_object_name(no_pods), GANGS.gang_object(no_pods)) == ("", None)
    assert GANGS.pod_additions(empty, "wl-0-a", "").spec == {}


def near(key: str, **selector):
    return {"weight": 100, "podAffinityTerm": {"topologyKey": key, "labelSelector": selector}}


@pytest.mark.parametrize("backend", [GANGS, PLAIN])
def test_preferred_constraints_become_preferred_affinity(backend):
    request = requests(a_body("a b c", "x:1=b,c", "/zone x:/rack b:/host"))["wl-0"]
    own = {"weight": 1, "podAffinityTerm": {"topologyKey": "mine"}}
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    affinity = {"nodeAffinity": {"of": "user"}, "podAffinity": {field: [own]}}
    members = ["wl-0-x-0-b", "wl-0-x-0-c"]
    pod = with_pod_additions(
        {"metadata": {}, "spec": {"affinity": affinity}},
        backend.pod_additions(request.gang, "wl-0-x-0-b", "g"),
    )
    assert pod["spec"]["affinity"] == {
        "nodeAffinity": {"of": "user"},
        "podAffinity": {
            field: [
                own,
                near(ZONE, matchLabels={"grove.io/podgang": "wl-0"}),
                near(
                    RACK,
                    matchExpressions=[{"key": "grove.io/podclique", "operator": "In", "values": members}],
                ),
                near(HOST, matchLabels={"grove.io/podclique": "wl-0-x-0-b"}),
            ]
        },
    }
    assert affinity["podAffinity"] == {field: [own]}, "the template's own affinity is not changed"
    alone = backend.pod_additions(request.gang, "wl-0-a", "g")
    assert alone.preferred_affinity == (near(ZONE, matchLabels={"grove.io/podgang": "wl-0"}),)


def test_pod_names_its_scheduling_group():
    gang = a_request(a_body("a", priorityClassName="high")).gang
    named = {"schedulingGroup": {"podGroupName": "g"}}
    assert ALPHA.pod_additions(gang, "wl-0-a", "g").spec == named
    assert GANGS.pod_additions(gang, "wl-0-a", "g").spec == named


@pytest.mark.parametrize(
    ("backend", "condition"), [(GANGS, "PodGroupInitiallyScheduled"), (ALPHA, "PodGroupScheduled")]
)
def test_waiting_reason_is_message_of_false_condition(backend, condition):
    body = backend.gang_object(a_request(a_body("a")))
    for status, reason in (("False", "no room"), ("True", "")):
        conditions = [{"type": "Other", "status": "False", "message": "x"}]
        conditions += [{"type": condition, "status": status, "message": "no room"}]
        assert backend.waiting_reason(with_status(body, {"conditions": conditions})) == reason


def test_problem_of_kind_names_flags_or_remedy():
    unserved = GANGS.kind_problem("")
    assert all(word in unserved for word in ("GenericWorkload=true", "v1beta1=true", "v1alpha2=true"))
    undecodable = GANGS.kind_problem('no kind "PodGroup" is registered for version')
    assert "docs/kubernetes-upgrade.md" in undecodable
    assert GANGS.kind_problem("etcd is not available") == ""
    with pytest.raises(UnsupportedGang, match="some problem"):
        GANGS.gang_object(replace(a_request(a_body("a")), kind_problem="some problem"))


REFUSED = [
    # wishes; the rejected part without gang scheduling, and with it
    ("", "", ""),
    ("/rack a:/host", "", ""),
    ("rack", "the PodCliqueSet", ""),
    ("a:rack", "clique a", "clique a"),
    ("zone x:rack", "scaling group x", "scaling group x"),
]


@pytest.mark.parametrize(("wishes", "plain", "with_gangs"), REFUSED)
def test_unsupported_required_constraints_are_rejected(wishes, plain, with_gangs):
    spec = scheduling_spec(a_body("a b", "x:1=b", wishes))
    for backend, part in ((PLAIN, plain), (GANGS, with_gangs)):
        problems = list(backend.unsupported_constraints(spec))
        assert bool(problems) == bool(part)
        assert all(part in problem and "use pack.preferred" in problem for problem in problems)


@pytest.mark.parametrize("mode", [PlacementMode.ALL, PlacementMode.CONSTRAINED])
@pytest.mark.parametrize("wishes", [wishes for wishes, *_ in REFUSED])
def test_placement_supports_all_constraints(mode, wishes):
    placing = Kube(placement=DefaultSchedulerConfig(placement=mode).placement_settings)
    assert list(placing.unsupported_constraints(scheduling_spec(a_body("a b", "x:1=b", wishes)))) == []
    assert placing.tries_fallbacks
    assert not PLAIN.tries_fallbacks


ALL_OF_A_GANG = [
    # cliques, groups, wishes; whether one key applies to all pods
    ("a", "", "a:rack", True),
    ("a b", "x:2/1=a,b", "x:rack", True),
    ("a", "x:2/1=a", "a:rack", True),
    ("a b", "x:2/2=a,b", "x:rack", False),
    ("a b c", "x:1=a,b", "x:rack", False),
    ("a b", "", "a:rack", False),
    ("a", "x:2/2=a", "a:rack", False),
    ("a b", "x:1=a,b", "x:rack a:host", False),
]


@pytest.mark.parametrize(("cliques", "groups", "wishes", "supported"), ALL_OF_A_GANG)
def test_constraint_on_whole_gang_is_supported(cliques, groups, wishes, supported):
    body = a_body(cliques, groups, wishes)
    assert (list(GANGS.unsupported_constraints(scheduling_spec(body))) == []) is supported
    keys = [bool(_group_key(request)) for request in requests(body).values()]
    assert all(keys) or not supported


def _group_key(request) -> str:
    spec = GANGS.gang_object(request)["spec"]
    return spec.get("schedulingConstraints", {}).get("topology", [{}])[0].get("key", "")
