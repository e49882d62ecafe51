"""Autoscalers: created for each configured part, repaired, deleted; they own the counts."""

from __future__ import annotations

from typing import Any

import pytest

from grove.api.naming import labels
from tests.plan.builders import Body, a_set
from tests.plan.simulator.api_server import METRICS_BY_DEFAULT
from tests.plan.simulator.simulator import Simulator, settled

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


def test_replica_has_one_autoscaler_per_configured_part():
    config = {"maxReplicas": 5, "minReplicas": 1, "metrics": [external()]}
    sim = settled(autoscaled(config, config, replicas=2))
    assert set(sim.api.all(KIND)) == {"wl-0-a", "wl-0-x", "wl-1-a", "wl-1-x"}


def test_autoscaler_matches_the_contract():
    sim = settled(autoscaled(group={"minReplicas": 1, "maxReplicas": 5, "metrics": [external()]}))
    found = sim.api.get(KIND, "wl-0-x")
    owner = sim.api.get("PodCliqueSet", "wl")["metadata"]
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


def test_clique_without_minimum_and_metrics_gets_defaults():
    sim = settled(autoscaled({"maxReplicas": 5}))
    spec = sim.api.get(KIND, "wl-0-a")["spec"]
    assert spec["scaleTargetRef"]["kind"] == "PodClique"
    assert spec["minReplicas"] == 2, "the template's replicas"
    assert spec["metrics"] == [*METRICS_BY_DEFAULT], "Kubernetes sets the default"


def test_autoscaler_is_created_after_its_target():
    plan = Simulator(autoscaled({"maxReplicas": 5})).plan()
    (created,) = (intent for intent in plan.intents if intent.id == f"create {KIND} ns/wl-0-a")
    assert created.after == ("create PodClique ns/wl-0-a",)


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
def test_edited_autoscaler_is_repaired(edit):
    sim = settled(autoscaled({"minReplicas": 1, "maxReplicas": 5, "metrics": [external()]}))
    before = sim.api.get(KIND, "wl-0-a")
    sim.api.patch(KIND, "wl-0-a", edit)
    assert [intent.id for intent in sim.plan().intents] == [f"patch {KIND} ns/wl-0-a"]
    sim.settle()
    after = sim.api.get(KIND, "wl-0-a")
    assert (after["spec"], after["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"])


def test_behavior_is_not_managed():
    sim = settled(autoscaled({"maxReplicas": 5}))
    sim.api.patch(KIND, "wl-0-a", {"spec": {"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}})
    assert sim.plan().intents == ()


def test_default_metric_is_kept_and_other_metrics_repaired():
    sim = settled(autoscaled({"maxReplicas": 5}))
    assert sim.plan().intents == ()
    sim.api.patch(KIND, "wl-0-a", {"spec": {"metrics": [external()]}})
    (patch,) = sim.plan().intents
    assert patch.body["spec"] == {"metrics": None}


@pytest.mark.parametrize(
    ("written", "stored"), [("0.5", "500m"), (3, "3"), ("1000", "1k"), ("2e3", "2k"), ("1024Ki", "1Mi")]
)
def test_quantity_normalized_by_server_is_unchanged(written, stored):
    def metric(amount: Any) -> Body:
        return external(type="AverageValue", averageValue=amount)

    sim = settled(autoscaled({"maxReplicas": 5, "metrics": [metric(written)]}))
    sim.api.patch(KIND, "wl-0-a", {"spec": {"metrics": [metric(stored)]}})
    assert sim.plan().intents == ()
    sim.api.patch(KIND, "wl-0-a", {"spec": {"metrics": [metric("17")]}})
    assert sim.plan().intents


def test_autoscaler_deleted_with_configuration_after_fence():
    sim = settled(autoscaled({"maxReplicas": 5}, {"maxReplicas": 5}))
    without = autoscaled(group={"maxReplicas": 5})["spec"]
    sim.api.patch("PodCliqueSet", "wl", {"spec": without})
    removal = next(intent for intent in sim.plan().intents if intent.id == f"delete {KIND} ns/wl-0-a")
    assert removal.uid == sim.api.get(KIND, "wl-0-a")["metadata"]["uid"]
    assert removal.after == ("patch PodCliqueSet ns/wl",)
    sim.settle()
    assert set(sim.api.all(KIND)) == {"wl-0-x"}


def test_autoscaler_is_deleted_with_its_replica():
    sim = settled(autoscaled({"maxReplicas": 5}, {"maxReplicas": 5}, replicas=2))
    sim.scale("PodCliqueSet", "wl", 1)
    sim.settle(1)
    assert set(sim.api.all(KIND)) == {"wl-0-a", "wl-0-x"}


def test_replica_count_is_never_written_again():
    sim = settled(autoscaled({"maxReplicas": 5}, {"maxReplicas": 5}))
    sim.scale("PodClique", "wl-0-a", 4)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 3)
    sim.restart_operator()
    sim.settle()
    assert sim.api.get("PodClique", "wl-0-a")["spec"]["replicas"] == 4
    assert sim.api.get("PodCliqueScalingGroup", "wl-0-x")["spec"]["replicas"] == 3
    assert len(sim.pods()) == 7


def test_upstream_autoscalers_adopted_foreign_ones_ignored():
    sim = settled(autoscaled({"maxReplicas": 5}, {"maxReplicas": 5}))
    sim.api.patch(KIND, "wl-0-a", {"metadata": {"labels": {labels.SET_REPLICA: None}}})
    foreign = {"uid": "other", "kind": "Other", "name": "o", "apiVersion": "v1", "controller": True}
    sim.api.patch(KIND, "wl-0-x", {"metadata": {"ownerReferences": [foreign]}, "spec": {"maxReplicas": 7}})
    sim.execute(sim.plan())
    assert sim.api.get(KIND, "wl-0-a")["metadata"]["labels"][labels.SET_REPLICA] == "0"
    assert sim.api.get(KIND, "wl-0-x")["spec"]["maxReplicas"] == 7


def test_set_without_autoscaling_plans_no_extra_write():
    plan = Simulator(autoscaled()).plan()
    assert not [intent.id for intent in plan.intents if KIND in intent.id]


def test_missing_autoscaler_recreated_after_set_confirmed():
    sim = settled(autoscaled({"maxReplicas": 5}))
    sim.api.delete(KIND, "wl-0-a")
    created = next(intent for intent in sim.plan().intents if intent.id == f"create {KIND} ns/wl-0-a")
    assert created.after == ("patch PodCliqueSet ns/wl",)
    sim.settle()
    assert set(sim.api.all(KIND)) == {"wl-0-a"}
