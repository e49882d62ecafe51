"""Autoscalers: made for what asks for one, mended, removed; the counts are theirs."""

from __future__ import annotations

from typing import Any

import pytest

from grove.api import labels
from tests.plan.api_server import METRICS_BY_DEFAULT
from tests.plan.builders import Body, a_set
from tests.plan.world import World, settled

KIND = "HorizontalPodAutoscaler"


def external(name: str = "queue", **target: Any) -> Body:
    target = target or {"type": "AverageValue", "averageValue": "10"}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def autoscaled(clique: Body | None = None, group: Body | None = None, **options: Any) -> Body:
    """A clique `a` of 2 and a group `x` of 2, with these configurations."""
    body = a_set("a:2/1 b:1", "x:2/1=b", **options)
    template = body["spec"]["template"]
    if clique is not None:
        template["cliques"][0]["spec"]["autoScalingConfig"] = clique
    if group is not None:
        template["podCliqueScalingGroups"][0]["scaleConfig"] = group
    return body


def test_each_replica_has_one_for_each_part_that_asks():
    config = {"maxReplicas": 5, "minReplicas": 1, "metrics": [external()]}
    world = settled(autoscaled(config, config, replicas=2))
    assert set(world.api.all(KIND)) == {"wl-0-a", "wl-0-x", "wl-1-a", "wl-1-x"}


def test_it_is_as_the_contract_says():
    world = settled(autoscaled(group={"minReplicas": 1, "maxReplicas": 5, "metrics": [external()]}))
    found = world.api.get(KIND, "wl-0-x")
    owner = world.api.get("PodCliqueSet", "wl")["metadata"]
    assert found["apiVersion"] == "autoscaling/v2"
    assert found["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "wl",
        "app.kubernetes.io/name": "wl-0-x",
        "app.kubernetes.io/component": "pcs-hpa",
        "grove.io/podcliqueset-replica-index": "0",
    }
    assert [(ref["kind"], ref["uid"], ref["controller"]) for ref in found["metadata"]["ownerReferences"]] == [
        ("PodCliqueSet", owner["uid"], True)
    ]
    assert found["spec"] == {
        "scaleTargetRef": {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueScalingGroup",
            "name": "wl-0-x",
        },
        "minReplicas": 1,
        "maxReplicas": 5,
        "metrics": [external()],
    }


def test_of_a_clique_without_minimum_and_metrics():
    world = settled(autoscaled({"maxReplicas": 5}))
    spec = world.api.get(KIND, "wl-0-a")["spec"]
    assert spec["scaleTargetRef"]["kind"] == "PodClique"
    assert spec["minReplicas"] == 2, "the template's replicas"
    assert spec["metrics"] == [*METRICS_BY_DEFAULT], "which ones then, Kubernetes decides"


def test_it_comes_after_what_it_scales():
    plan = World(autoscaled({"maxReplicas": 5})).plan()
    (made,) = (intent for intent in plan.intents if intent.id == f"create {KIND} ns/wl-0-a")
    assert made.after == ("create PodClique ns/wl-0-a",)


@pytest.mark.parametrize(
    "edit",
    [
        {"spec": {"maxReplicas": 99}},
        {"spec": {"minReplicas": 2}},
        {"spec": {"scaleTargetRef": {"name": "wl-0-b"}}},
        {"spec": {"metrics": [external("other")]}},
        {"spec": {"metrics": None}},
        {"metadata": {"labels": {labels.COMPONENT: "mine"}}},
    ],
    ids=str,
)
def test_an_edit_is_set_right(edit):
    world = settled(autoscaled({"minReplicas": 1, "maxReplicas": 5, "metrics": [external()]}))
    before = world.api.get(KIND, "wl-0-a")
    world.api.patch(KIND, "wl-0-a", edit)
    assert [intent.id for intent in world.plan().intents] == [f"patch {KIND} ns/wl-0-a"]
    world.settle()
    after = world.api.get(KIND, "wl-0-a")
    assert (after["spec"], after["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"])


def test_behaviour_is_left_to_whoever_tunes_it():
    world = settled(autoscaled({"maxReplicas": 5}))
    world.api.patch(KIND, "wl-0-a", {"spec": {"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}})
    assert world.plan().intents == ()


def test_the_metric_that_kubernetes_fills_in_is_not_fought_but_others_are():
    world = settled(autoscaled({"maxReplicas": 5}))
    assert world.plan().intents == ()
    world.api.patch(KIND, "wl-0-a", {"spec": {"metrics": [external()]}})
    (mended,) = world.plan().intents
    assert mended.body["spec"] == {"metrics": None}


@pytest.mark.parametrize(
    ("written", "stored"), [("0.5", "500m"), (3, "3"), ("1000", "1k"), ("2e3", "2k"), ("1024Ki", "1Mi")]
)
def test_an_amount_spelt_by_the_server_is_the_same_amount(written, stored):
    def metric(amount: Any) -> Body:
        return external(type="AverageValue", averageValue=amount)

    world = settled(autoscaled({"maxReplicas": 5, "metrics": [metric(written)]}))
    world.api.patch(KIND, "wl-0-a", {"spec": {"metrics": [metric(stored)]}})
    assert world.plan().intents == ()
    world.api.patch(KIND, "wl-0-a", {"spec": {"metrics": [metric("17")]}})
    assert world.plan().intents


def test_it_goes_with_its_configuration_once_the_set_is_known_to_say_so():
    world = settled(autoscaled({"maxReplicas": 5}, {"maxReplicas": 5}))
    without = autoscaled(group={"maxReplicas": 5})["spec"]
    world.api.patch("PodCliqueSet", "wl", {"spec": without})
    removal = next(intent for intent in world.plan().intents if intent.id == f"delete {KIND} ns/wl-0-a")
    assert removal.uid == world.api.get(KIND, "wl-0-a")["metadata"]["uid"]
    assert removal.after == ("patch PodCliqueSet ns/wl",)
    world.settle()
    assert set(world.api.all(KIND)) == {"wl-0-x"}


def test_it_goes_with_its_replica():
    world = settled(autoscaled({"maxReplicas": 5}, {"maxReplicas": 5}, replicas=2))
    world.scale("PodCliqueSet", "wl", 1)
    world.settle(1)
    assert set(world.api.all(KIND)) == {"wl-0-a", "wl-0-x"}


def test_the_count_is_never_written_again():
    world = settled(autoscaled({"maxReplicas": 5}, {"maxReplicas": 5}))
    world.scale("PodClique", "wl-0-a", 4)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 3)
    world.restart_operator()
    world.settle()
    assert world.api.get("PodClique", "wl-0-a")["spec"]["replicas"] == 4
    assert world.api.get("PodCliqueScalingGroup", "wl-0-x")["spec"]["replicas"] == 3
    assert len(world.pods()) == 7


def test_upstreams_are_taken_over_by_name_and_those_of_others_are_left_alone():
    world = settled(autoscaled({"maxReplicas": 5}, {"maxReplicas": 5}))
    world.api.patch(KIND, "wl-0-a", {"metadata": {"labels": {labels.SET_REPLICA: None}}})
    foreign = {"uid": "other", "kind": "Other", "name": "o", "apiVersion": "v1", "controller": True}
    world.api.patch(KIND, "wl-0-x", {"metadata": {"ownerReferences": [foreign]}, "spec": {"maxReplicas": 7}})
    world.carry_out(world.plan())
    assert world.api.get(KIND, "wl-0-a")["metadata"]["labels"][labels.SET_REPLICA] == "0"
    assert world.api.get(KIND, "wl-0-x")["spec"]["maxReplicas"] == 7


def test_a_workload_without_autoscaling_costs_not_one_write_more():
    plan = World(autoscaled()).plan()
    assert not [intent.id for intent in plan.intents if KIND in intent.id]


def test_one_that_is_missing_comes_back_once_the_set_is_known_to_ask_for_it():
    world = settled(autoscaled({"maxReplicas": 5}))
    world.api.delete(KIND, "wl-0-a")
    made = next(intent for intent in world.plan().intents if intent.id == f"create {KIND} ns/wl-0-a")
    assert made.after == ("patch PodCliqueSet ns/wl",)
    world.settle()
    assert set(world.api.all(KIND)) == {"wl-0-a"}
