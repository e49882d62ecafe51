"""Replicas of components with a scaling adapter: updates and defaults keep what the adapter has set."""

from __future__ import annotations

import msgspec
import pytest

from grove.dynamo.admission import graph_validation
from grove.dynamo.admission.defaults import default_graph
from tests.dynamo.builders import KNOWN, alpha, component, deployment, service
from tests.dynamo.reconcile.test_scaling import ADAPTED, KIND, OLDER

OTHERS = "jane"
PLANNER = "system:serviceaccount:ns:planner-serviceaccount"


@pytest.mark.parametrize("body", [ADAPTED, OLDER])
@pytest.mark.parametrize(
    ("by", "rejected"), [(OTHERS, True), ("planner-serviceaccount", True), (PLANNER, False), ("", False)]
)
def test_replicas_with_adapter_are_protected(body, by, rejected):
    new = msgspec.json.decode(msgspec.json.encode(body))
    parts = new["spec"].get("components") or list(new["spec"]["services"].values())
    parts[1]["replicas"] = 7
    errors = [str(each) for each in graph_validation.on_update(body, new, KNOWN, by=by).errors]
    assert bool(errors) == rejected
    if rejected:
        assert f"{KIND} app-worker sets 2 replicas: scale the adapter" in errors[0]


def test_replicas_without_adapter_may_be_changed():
    new = deployment(component("Web", "frontend", replicas=3), component(replicas=2, scalingAdapter={}))
    assert graph_validation.on_update(ADAPTED, new, KNOWN, by=OTHERS).errors == ()


def test_missing_replicas_keep_adapter_value():
    scaled = deployment(component("Web", "frontend", replicas=3), component(replicas=5, scalingAdapter={}))
    applied = deployment(component("Web", "frontend"), component(scalingAdapter={}))
    web, worker = default_graph(applied, creating=False, old=scaled)["spec"]["components"]
    assert (web["replicas"], worker["replicas"]) == (1, 5)
    older = alpha(Worker=service(replicas=5, scalingAdapter={"enabled": True}))
    filled = default_graph(alpha(Worker=service()), creating=False, old=older)
    assert filled["spec"]["services"]["Worker"]["replicas"] == 5
    off = alpha(Worker=service(replicas=5, scalingAdapter={"enabled": False}))
    filled = default_graph(alpha(Worker=service()), creating=False, old=off)
    assert filled["spec"]["services"]["Worker"]["replicas"] == 1
