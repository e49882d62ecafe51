"""Names, labels, annotations, owners, environment and host names of objects, by the contract."""

from __future__ import annotations

import pytest

from grove.api.naming import labels
from tests.plan.builders import Body, a_clique, a_set
from tests.plan.simulator.simulator import Simulator


def a_simulator() -> Simulator:
    """A clique outside of groups and a group of two replicas, the second of which is a scaled gang."""
    body = a_set("a:1 b:2/1", "x:2/1=b")
    body["metadata"] |= {
        "labels": {"team": "blue", "grove.io/private": "no"},
        "annotations": {"note": "yes", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    for clique in body["spec"]["template"]["cliques"]:
        clique |= {
            "labels": {"role": clique["name"], labels.PART_OF: "mine"},
            "annotations": {"why": "because", "grove.io/topology-name": "t"},
        }
    body["spec"]["template"]["podCliqueScalingGroups"][0]["annotations"] = {"of": "group"}
    sim = Simulator(body)
    sim.settle()
    return sim


MANAGED = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "wl"}
REPLICA = {"grove.io/podcliqueset-replica-index": "0"}


def named(name: str, component: str) -> dict[str, str]:
    return {**MANAGED, "app.kubernetes.io/name": name, "app.kubernetes.io/component": component, **REPLICA}


def the_hash(sim: Simulator, clique: str) -> str:
    return str(sim.api.get("PodClique", clique)["metadata"]["labels"]["grove.io/pod-template-hash"])


def expected_labels(sim: Simulator) -> dict[tuple[str, str], dict[str, str]]:
    gang = {**MANAGED, "app.kubernetes.io/component": "podgang", **REPLICA, "team": "blue"}
    gang["grove.io/scheduler-name"] = "default-scheduler"
    alone = {
        **named("wl-0-a", "pcs-podclique"),
        "role": "a",
        "grove.io/clique": "a",
        "grove.io/podgang": "wl-0",
        "grove.io/pod-template-hash": the_hash(sim, "wl-0-a"),
    }
    member = {
        **named("wl-0-x-1-b", "pcsg-podclique"),
        "role": "b",
        "grove.io/clique": "b",
        "grove.io/podgang": "wl-0-x-0",
        "grove.io/base-podgang": "wl-0",
        "grove.io/podcliquescalinggroup": "wl-0-x",
        "grove.io/podcliquescalinggroup-replica-index": "1",
        "grove.io/pod-template-hash": the_hash(sim, "wl-0-x-1-b"),
    }
    return {
        ("Service", "wl-0"): named("wl-0", "pcs-headless-service"),
        ("PodCliqueScalingGroup", "wl-0-x"): named("wl-0-x", "pcs-podcliquescalinggroup"),
        ("PodGang", "wl-0"): gang,
        ("PodGang", "wl-0-x-0"): gang,
        ("PodClique", "wl-0-a"): alone,
        ("PodClique", "wl-0-x-1-b"): member,
        ("Pod", one_pod(sim, "wl-0-a", 0)): {
            **alone,
            "grove.io/podclique": "wl-0-a",
            "grove.io/podclique-pod-index": "0",
        },
        ("Pod", one_pod(sim, "wl-0-x-1-b", 1)): {
            **member,
            "grove.io/podclique": "wl-0-x-1-b",
            "grove.io/podclique-pod-index": "1",
        },
    }


def one_pod(sim: Simulator, clique: str, index: int) -> str:
    pods = sim.pods(clique).items()
    return next(name for name, pod in pods if pod.metadata.labels[labels.POD_INDEX] == str(index))


def test_labels_of_objects():
    sim = a_simulator()
    expected = expected_labels(sim)
    assert {key: sim.api.get(*key)["metadata"]["labels"] for key in expected} == expected


def test_clique_of_base_gang_has_no_base_gang_label():
    object_labels = a_simulator().api.get("PodClique", "wl-0-x-0-b")["metadata"]["labels"]
    assert (object_labels["grove.io/podgang"], "grove.io/base-podgang" in object_labels) == ("wl-0", False)


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("Service", "wl-0", None),
        ("PodCliqueScalingGroup", "wl-0-x", {"of": "group"}),
        ("PodGang", "wl-0", {"note": "yes"}),
        ("PodClique", "wl-0-a", {"why": "because"}),
        ("Pod", "wl-0-a", {"why": "because"}),
    ],
)
def test_annotations_of_objects(kind, name, expected):
    sim = a_simulator()
    name = one_pod(sim, name, 0) if kind == "Pod" else name
    assert sim.api.get(kind, name)["metadata"].get("annotations") == expected


@pytest.mark.parametrize(
    ("kind", "name", "owner"),
    [
        ("Service", "wl-0", ("PodCliqueSet", "wl")),
        ("PodCliqueScalingGroup", "wl-0-x", ("PodCliqueSet", "wl")),
        ("PodGang", "wl-0", ("PodCliqueSet", "wl")),
        ("PodGang", "wl-0-x-0", ("PodCliqueSet", "wl")),
        ("PodClique", "wl-0-a", ("PodCliqueSet", "wl")),
        ("PodClique", "wl-0-x-0-b", ("PodCliqueScalingGroup", "wl-0-x")),
        ("Pod", "wl-0-a", ("PodClique", "wl-0-a")),
        ("Pod", "wl-0-x-1-b", ("PodClique", "wl-0-x-1-b")),
    ],
)
def test_direct_parent_is_the_only_owner(kind, name, owner):
    sim = a_simulator()
    name = one_pod(sim, name, 0) if kind == "Pod" else name
    parent = sim.api.get(*owner)
    assert sim.api.get(kind, name)["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "grove.io/v1alpha1",
            "kind": owner[0],
            "name": owner[1],
            "uid": parent["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_created_objects_have_no_finalizer():
    sim = a_simulator()
    kinds = ("Service", "PodCliqueScalingGroup", "PodClique", "PodGang", "Pod")
    assert not any("finalizers" in body["metadata"] for kind in kinds for body in sim.api.objects(kind))


@pytest.mark.parametrize(("config", "published"), [(None, True), (True, True), (False, False)])
def test_service_is_headless_and_selects_the_replica(config, published):
    template = {} if config is None else {"headlessServiceConfig": {"publishNotReadyAddresses": config}}
    sim = Simulator(a_set("a:1", **template))
    sim.settle()
    assert sim.api.get("Service", "wl-0")["spec"] == {
        "clusterIP": "None",
        "selector": {**MANAGED, **REPLICA},
        "publishNotReadyAddresses": published,
    }


def test_specs_of_groups_and_cliques():
    sim = a_simulator()
    group = sim.api.get("PodCliqueScalingGroup", "wl-0-x")["spec"]
    assert group == {"replicas": 2, "minAvailable": 1, "cliqueNames": ["b"]}
    clique = sim.api.get("PodClique", "wl-0-x-1-b")["spec"]
    assert {key: clique[key] for key in ("roleName", "replicas", "minAvailable")} == {
        "roleName": "b",
        "replicas": 2,
        "minAvailable": 1,
    }


def field(label: str) -> Body:
    return {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}


POD_VARIABLES = [
    {"name": "GROVE_PCS_NAME", "value": "wl"},
    {"name": "GROVE_PCS_INDEX", "value": "0"},
    {"name": "GROVE_PCLQ_NAME", "value": "wl-0-x-1-b"},
    {"name": "GROVE_HEADLESS_SERVICE", "value": "wl-0.ns.svc.cluster.local"},
    {"name": "GROVE_PCLQ_POD_INDEX", "valueFrom": field("grove.io/podclique-pod-index")},
]
GROUP_VARIABLES = [
    {"name": "GROVE_PCSG_NAME", "valueFrom": field("grove.io/podcliquescalinggroup")},
    {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": "5"},
    {"name": "GROVE_PCSG_INDEX", "valueFrom": field("grove.io/podcliquescalinggroup-replica-index")},
]


def simulator_with_reserved_variables() -> Simulator:
    """A user sets reserved variables, in a container and in an init container."""
    own = [{"name": "GROVE_PCS_NAME", "value": "mine"}, {"name": "MINE", "value": "1"}]
    own += [{"name": "GROVE_PCSG_INDEX", "value": "7"}, {"name": "ALSO_MINE", "value": "$(MINE)"}]
    body = a_set("a:1 b:2/1 c:3", "x:2/1=b,c")
    spec = body["spec"]["template"]["cliques"][1]["spec"]["podSpec"]
    spec["containers"].append({"name": "side", "image": "i", "env": own})
    spec["initContainers"] = [{"name": "first", "image": "i", "env": own}]
    sim = Simulator(body)
    sim.settle()
    return sim


def test_env_variables_come_first_and_override_the_users():
    sim = simulator_with_reserved_variables()
    pod = sim.api.get("Pod", one_pod(sim, "wl-0-x-1-b", 0))
    users = [{"name": "MINE", "value": "1"}, {"name": "ALSO_MINE", "value": "$(MINE)"}]
    ours = POD_VARIABLES + GROUP_VARIABLES
    assert [container["env"] for container in pod["spec"]["containers"]] == [ours, ours + users]
    assert pod["spec"]["initContainers"][0]["env"] == ours + users


def test_clique_in_group_has_only_group_variables():
    spec = simulator_with_reserved_variables().api.get("PodClique", "wl-0-x-1-b")["spec"]["podSpec"]
    assert spec["containers"][0]["env"] == GROUP_VARIABLES


def test_clique_outside_groups_keeps_pod_spec_as_written():
    body = a_set("a:1")
    sim = Simulator(body)
    sim.settle()
    written = body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
    assert sim.api.get("PodClique", "wl-0-a")["spec"]["podSpec"] == written


def test_host_names_and_subdomain():
    sim = a_simulator()
    spec = sim.api.get("Pod", one_pod(sim, "wl-0-x-1-b", 1))["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("wl-0-x-1-b-1", "wl-0")


@pytest.mark.parametrize("asked", ["", "kai-scheduler"])
def test_scheduler_name_is_on_pods_and_gang(asked):
    body = a_set("a:1")
    if asked:
        body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = asked
    sim = Simulator(body)
    sim.settle()
    (pod,) = sim.api.objects("Pod")
    chosen = asked or "default-scheduler"
    assert pod["spec"]["schedulerName"] == chosen
    assert sim.api.get("PodGang", "wl-0")["metadata"]["labels"]["grove.io/scheduler-name"] == chosen


def test_unknown_pod_spec_fields_reach_the_pods():
    strange = {"hostUsers": False, "fromTheFuture": {"deep": [1, {"er": None}], "": 1.5}}
    body = a_set("a:1")
    body["spec"]["template"]["cliques"][0] = a_clique("a:1", **strange)
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["novel"] = {"x": 1}
    sim = Simulator(body)
    sim.settle()
    (pod,) = sim.api.objects("Pod")
    assert {key: pod["spec"][key] for key in strange} == strange
    assert pod["spec"]["containers"][0]["novel"] == {"x": 1}


def test_headless_service_creation_delays_nothing():
    plan = Simulator(a_set("a:1")).plan()
    assert not any("Service" in dependency for intent in plan.intents for dependency in intent.after)
