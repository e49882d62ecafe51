"""Which shared claims exist, their owners, and which pods refer to them."""

from __future__ import annotations

import pytest
import yaml

from grove.api.naming import labels
from grove.plan.desired.expand import expand
from grove.plan.desired.shared_claims import claim_names_of_pod, referred_templates, with_claims
from tests.plan.builders import a_set, read_set
from tests.plan.simulator.shared_claims import KIND, a_template, claims, device, own, owner, sharing, used
from tests.plan.simulator.simulator import Simulator, settled
from tests.shared import shared_data

# Upstream's workload, level by level.

ALL_PODS = ["rs-test-all-int-tpl5", "rs-test-0-ext-tpl"]


def upstreams() -> Simulator:
    text = shared_data("workloads/workload-resource-sharing.yaml").read_text()
    body = [part for part in yaml.safe_load_all(text) if part][-1]
    body["metadata"]["namespace"] = "ns"
    sim = Simulator(body)
    sim.claim_templates = {
        ("ns", "ext-tpl"): a_template("ns", "ext-tpl"),
        ("rs-shared", "ext-ns-tpl"): a_template("rs-shared", "ext-ns-tpl", shared_with="ns"),
    }
    return sim


def expected(group_replicas: int = 2, pods: int = 1) -> set[str]:
    return {
        "rs-test-all-int-tpl5",
        "rs-test-all-int-tpl7",
        "rs-test-0-ext-tpl",
        "rs-test-0-int-tpl",
        "rs-test-0-worker-a-all-ext-ns-tpl",
        "rs-test-0-sga-all-int-tpl2",
        "rs-test-0-sga-all-int-tpl8",
        *(f"rs-test-0-worker-a-{index}-int-tpl4" for index in range(pods)),
        *(f"rs-test-0-sga-{index}-int-tpl3" for index in range(group_replicas)),
        *(f"rs-test-0-sga-{index}-worker-b-all-int-tpl6" for index in range(group_replicas)),
    }


def test_upstream_workload_has_upstreams_claims():
    sim = upstreams()
    sim.settle()
    assert claims(sim) == expected()
    for replicas in (1, 3):
        sim.scale("PodCliqueScalingGroup", "rs-test-0-sga", replicas)
        sim.settle()
        assert claims(sim) == expected(replicas)
    for pods in (2, 1):
        sim.scale("PodClique", "rs-test-0-worker-a", pods)
        sim.settle()
        assert claims(sim) == expected(3, pods)


def test_upstream_workload_pods_refer_to_filtered_claims():
    sim = upstreams()
    sim.settle()
    of_a = ["rs-test-0-int-tpl", "rs-test-0-worker-a-all-ext-ns-tpl", "rs-test-0-worker-a-0-int-tpl4"]
    assert used(sim, "rs-test-0-worker-a") == [ALL_PODS + of_a]
    assert used(sim, "rs-test-0-sga-1-worker-b") == [
        [
            "rs-test-all-int-tpl5",
            "rs-test-all-int-tpl7",
            "rs-test-0-ext-tpl",
            "rs-test-0-sga-all-int-tpl2",
            "rs-test-0-sga-all-int-tpl8",
            "rs-test-0-sga-1-int-tpl3",
            "rs-test-0-sga-1-worker-b-all-int-tpl6",
        ]
    ]


def place(sim: Simulator, name: str) -> dict[str, str]:
    """The labels of a claim beyond those that all claims have."""
    object_labels = sim.api.get(KIND, name)["metadata"]["labels"]
    common = labels.managed("wl") | {"app.kubernetes.io/component": "resource-claim"}
    assert common.items() <= object_labels.items()
    return {key: value for key, value in object_labels.items() if key not in common}


REPLICA, OF_GROUP = "grove.io/podcliqueset-replica-index", "grove.io/podcliquescalinggroup"
GROUP_INDEX, OF_CLIQUE = "grove.io/podcliquescalinggroup-replica-index", "grove.io/podclique"
POD = "grove.io/podclique-pod-index"


@pytest.mark.parametrize(
    ("body", "name", "held_by", "object_labels"),
    [
        (sharing(set_="t"), "wl-all-t", ("PodCliqueSet", "wl"), {}),
        (sharing(set_="t/"), "wl-0-t", ("PodCliqueSet", "wl"), {REPLICA: "0"}),
        (sharing(group="t"), "wl-0-x-all-t", ("PodCliqueScalingGroup", "wl-0-x"), {OF_GROUP: "wl-0-x"}),
        (
            sharing(group="t/"),
            "wl-0-x-1-t",
            ("PodCliqueScalingGroup", "wl-0-x"),
            {OF_GROUP: "wl-0-x", GROUP_INDEX: "1"},
        ),
        (sharing(clique="t"), "wl-0-a-all-t", ("PodClique", "wl-0-a"), {OF_CLIQUE: "wl-0-a"}),
        (sharing(clique="t/"), "wl-0-a-1-t", ("PodClique", "wl-0-a"), {OF_CLIQUE: "wl-0-a", POD: "1"}),
        (sharing(member="t"), "wl-0-x-1-b-all-t", ("PodClique", "wl-0-x-1-b"), {OF_CLIQUE: "wl-0-x-1-b"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_claim_object_matches_the_contract(body, name, held_by, object_labels):
    sim = settled(body)
    assert name in claims(sim)
    assert owner(sim, name) == held_by
    assert place(sim, name) == object_labels
    found = sim.api.get(KIND, name)
    assert found["apiVersion"] == "resource.k8s.io/v1"
    assert found["spec"] == device("t"), "of the template the spec, not the metadata"
    assert "annotations" not in found["metadata"]


FILTERS = [
    (None, ["a", "b"]),
    ({"childCliqueNames": ["a"]}, ["a"]),
    ({"childCliqueNames": ["b"]}, ["b"]),
    ({"childScalingGroupNames": ["x"]}, ["b"]),
    ({"childCliqueNames": ["x"]}, ["b"]),
    ({"childScalingGroupNames": ["a"]}, ["a"]),
    ({"childCliqueNames": ["a"], "childScalingGroupNames": ["x"]}, ["a", "b"]),
    ({"childCliqueNames": ["c"]}, []),
]


@pytest.mark.parametrize(("chosen", "cliques"), FILTERS, ids=str)
def test_filter_limits_references_and_not_creation(chosen, cliques):
    body = sharing(set_="t")
    if chosen:
        body["spec"]["template"]["resourceSharing"][0]["filter"] = chosen
    workload = read_set(body)
    layout = expand(workload, 0, {}, {})
    found = {clique.template.name for clique in layout.cliques if claim_names_of_pod(workload, 0, clique, 0)}
    assert found == set(cliques)
    assert claims(settled(body)) == {"wl-all-t"}


def test_group_filter_names_its_cliques():
    body = a_set("a:1 b:1", "x:1=a,b", resourceClaimTemplates=own("t"))
    entry = {"name": "t", "scope": "AllReplicas", "filter": {"childCliqueNames": ["b"]}}
    body["spec"]["template"]["podCliqueScalingGroups"][0]["resourceSharing"] = [entry]
    sim = settled(body)
    assert (used(sim, "wl-0-x-0-a"), used(sim, "wl-0-x-0-b")) == ([[]], [["wl-0-x-all-t"]])


def test_user_containers_get_claims_and_keep_their_own():
    mine = {"name": "mine", "resourceClaimTemplateName": "mine"}
    spec = {
        "resourceClaims": [mine],
        "containers": [{"name": "main", "resources": {"limits": {"cpu": 1}, "claims": [{"name": "mine"}]}}],
        "initContainers": [{"name": "load"}, {"name": "grove-initc"}],
    }
    found = with_claims(spec, ["one", "two"])
    assert found["resourceClaims"] == [
        mine,
        {"name": "one", "resourceClaimName": "one"},
        {"name": "two", "resourceClaimName": "two"},
    ]
    assert found["containers"][0]["resources"] == {
        "limits": {"cpu": 1},
        "claims": [{"name": "mine"}, {"name": "one"}, {"name": "two"}],
    }
    load, waits = found["initContainers"]
    assert load["resources"]["claims"] == [{"name": "one"}, {"name": "two"}]
    assert "resources" not in waits, "it only reads pods"
    assert with_claims(found, ["one", "two"]) == found
    assert with_claims(spec, []) is spec


def test_sharing_changes_neither_hash_nor_clique():
    plain, sharing_ = settled(sharing()), settled(sharing("t", "t", "t/", "t"))
    for name in ("wl-0-a", "wl-0-x-0-b"):
        before, after = (sim.api.get("PodClique", name) for sim in (plain, sharing_))
        assert before["spec"] == after["spec"]
        assert before["metadata"]["labels"] == after["metadata"]["labels"]


def test_set_without_sharing_plans_no_claims():
    sim = Simulator(sharing())
    assert not [intent.id for intent in sim.plan().intents if KIND in intent.id]
    assert referred_templates(read_set(sharing())) == frozenset()


def test_referred_templates_of_a_set():
    found = read_set(sharing("ext own@elsewhere", "ext@third/", clique="t"))
    assert referred_templates(found) == {("ns", "ext"), ("elsewhere", "own"), ("third", "ext")}


def test_template_in_other_namespace_is_not_the_sets_own():
    body = sharing(set_="t t@elsewhere")
    sim = Simulator(body)
    sim.claim_templates = {("elsewhere", "t"): a_template("elsewhere", "other")}
    workload = sim.snapshot().workload
    assert referred_templates(workload) == {("elsewhere", "t")}
