"""Graphs that an earlier release stored in the shape of v1alpha1 are rewritten in v1beta1."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove import timing
from grove.api.configuration.types import OperatorConfiguration
from grove.api.intents import Patch
from grove.dynamo.context import GraphContext
from grove.dynamo.snapshot import StoredGraph, snapshot_of
from tests.dynamo.builders import FACTS, KNOWN, alpha, component, deployment, service, with_stored
from tests.dynamo.reconcile.test_planner import done, planned, snapshot

WRITTEN = alpha(
    {"envs": [{"name": "X", "value": "1"}]},
    Web=service("frontend", labels={"team": "a"}),
    Worker=service(subComponentType="decode", envFromSecret="hf", replicas=2),
)


def of_earlier_release(annotations=None):
    """The graph as it was stored, with everything that was created for it."""
    after = done(snapshot(WRITTEN))
    meta = replace(after.stored.metadata, annotations=annotations or _given(after), resource_version="7")
    stored = replace(after.stored, metadata=meta, spec=WRITTEN["spec"])
    return with_stored(after, stored)


def _given(found):
    return {key: value for key, value in found.stored.metadata.annotations.items() if "dgd-" not in key}


def patches(plan):
    return [each for each in plan.intents if isinstance(each, Patch)]


def test_spec_is_rewritten_and_nothing_else():
    plan = planned(of_earlier_release())
    (patch,) = plan.intents
    version, spec, annotation = patch.body
    assert version == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}
    assert spec["path"] == "/spec"
    assert [each["name"] for each in spec["value"]["components"]] == ["Web", "Worker"]
    assert spec["value"]["components"][1]["type"] == "decode"
    assert annotation["path"] == "/metadata/annotations/nvidia.com~1dgd-v1alpha1"


def test_rewritten_graph_needs_no_further_write():
    before = of_earlier_release()
    (patch,) = planned(before).intents
    _, spec, annotation = patch.body
    known = before.stored.metadata
    meta = replace(known, annotations={**known.annotations, "nvidia.com/dgd-v1alpha1": annotation["value"]})
    after = with_stored(before, replace(before.stored, metadata=meta, spec=spec["value"]))
    assert planned(after).intents == ()


def test_graph_without_annotations_gets_its_provider_first():
    (patch, *_) = patches(planned(of_earlier_release({"a": "b"})))
    assert patch.body["metadata"]["annotations"] == {"nvidia.com/workload-provider": "grove"}


@pytest.mark.parametrize(
    "spec", [{"services": {"A": {"replicaz": 1}}}, {"services": {"A": {"replicas": "x"}}}]
)
def test_invalid_graph_is_rewritten_too(spec):
    body = {"metadata": {"name": "app", "namespace": "ns", "uid": "u", "resourceVersion": "7"}, "spec": spec}
    plan = planned(snapshot_of(msgspec.convert(body, StoredGraph), KNOWN, FACTS))
    (patch,) = plan.intents
    assert patch.body[1]["value"]["components"][0]["name"] == "A"
    assert patch.body[2]["path"] == "/metadata/annotations"
    assert plan.status_updates[0].desired.state == "failed"


def test_graph_too_large_for_beta_is_not_rewritten():
    """The API server would refuse the patch each time."""
    before = of_earlier_release()
    variables = [{"name": "V", "value": "x" * timing.MAX_ANNOTATIONS}]
    large = {"services": {**WRITTEN["spec"]["services"]}, "envs": variables}
    large["services"]["Web"] = {**large["services"]["Web"], "envs": variables}
    after = with_stored(before, replace(before.stored, spec=large))
    assert not [each for each in patches(planned(after)) if each.target.kind == "DynamoGraphDeployment"]


def test_graph_is_not_rewritten_without_conversion():
    """An operator of some namespaces registers no conversion: clients of v1alpha1 would lose `services`."""
    context = GraphContext.of(OperatorConfiguration(namespaces=("ns",)))
    assert not patches(planned(replace(of_earlier_release(), context=context)))


def test_graph_in_beta_is_not_rewritten():
    assert not patches(planned(done(snapshot(deployment(component())))))
