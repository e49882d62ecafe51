"""Scaling adapters of components that autoscalers scale."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.intents import Create, Delete, Patch, PatchType, Status
from grove.api.meta import ObjectMeta, OwnerReference
from grove.dynamo.snapshot import ChildObject
from tests.dynamo.builders import alpha, component, deployment, service, with_stored
from tests.dynamo.reconcile.test_planner import done, planned, snapshot

KIND = "DynamoGraphDeploymentScalingAdapter"
SELECTOR = "nvidia.com/dynamo-component=Worker,nvidia.com/dynamo-graph-deployment-name=app"
ADAPTED = deployment(component("Web", "frontend"), component(replicas=2, scalingAdapter={}))
OLDER = alpha(Web=service("frontend"), Worker=service(replicas=2, scalingAdapter={"enabled": True}))


def about(plan):
    """The writes of a plan that target adapters and graphs."""
    return [each for each in plan.intents if each.target.kind in (KIND, "DynamoGraphDeployment")]


def with_adapter(body, replicas, status=None):
    found = done(snapshot(body))
    (owner,) = [
        OwnerReference(kind="DynamoGraphDeployment", name="app", uid="u", api_version="nvidia.com/v1")
    ]
    meta = ObjectMeta(name="app-worker", namespace="ns", uid="a", owner_references=(owner,))
    adapter = ChildObject(meta, spec={"replicas": replicas}, status=status)
    return replace(found, children={**found.children, (KIND, "app-worker"): adapter})


ADAPTER_STATUS = {"replicas": 2, "selector": SELECTOR}


@pytest.mark.parametrize("body", [ADAPTED, OLDER])
def test_adapter_is_created_with_component_replicas(body):
    (created,) = about(planned(snapshot(body)))
    assert isinstance(created, Create)
    assert created.target.name == "app-worker"
    assert created.body["spec"] == {
        "replicas": 2,
        "dgdRef": {"name": "app", "componentName": "Worker", "serviceName": "Worker"},
    }
    assert created.body["metadata"]["ownerReferences"][0]["uid"] == "u"


def test_adapter_status_has_replicas_and_selector():
    (status,) = about(planned(with_adapter(ADAPTED, 2)))
    assert isinstance(status, Status)
    assert status.body == {"status": ADAPTER_STATUS}


def test_unchanged_adapter_writes_nothing():
    assert planned(with_adapter(ADAPTED, 2, ADAPTER_STATUS)).intents == ()
    later = {**ADAPTER_STATUS, "lastScaleTime": "2026-01-01T00:00:00Z"}
    assert planned(with_adapter(ADAPTED, 2, later)).intents == ()


@pytest.mark.parametrize("body", [ADAPTED, OLDER])
def test_adapter_replicas_are_copied_to_component(body):
    plan = planned(with_adapter(body, 5, ADAPTER_STATUS), now=0.0)
    patch, status = about(plan)
    assert isinstance(patch, Patch)
    assert patch.body[-1] == {"op": "add", "path": "/spec/components/1/replicas", "value": 5}
    assert status.body["status"] == {**ADAPTER_STATUS, "replicas": 5, "lastScaleTime": "1970-01-01T00:00:00Z"}
    (event,) = plan.events
    assert event.note == f"Scales Worker from 2 to 5 replicas, as set in {KIND} app-worker"


def test_reordered_components_are_not_patched():
    (patch, _) = about(planned(with_adapter(ADAPTED, 5, ADAPTER_STATUS)))
    assert patch.body[0] == {"op": "test", "path": "/spec/components/1/name", "value": "Worker"}


def test_opt_out_deletes_only_owned_adapter():
    without = deployment(component("Web", "frontend"), component(replicas=2))
    found = with_adapter(without, 5)
    (deleted,) = about(planned(found))
    assert isinstance(deleted, Delete)
    other = replace(
        found.children[KIND, "app-worker"], metadata=ObjectMeta(name="app-worker", namespace="ns", uid="a")
    )
    found = replace(found, children={**found.children, (KIND, "app-worker"): other})
    assert about(planned(found)) == []


def test_two_scaled_components_are_one_patch():
    body = deployment(*(component(name, scalingAdapter={}) for name in ("Decode", "Prefill")))
    found = done(snapshot(body))
    for name, replicas in (("app-decode", 3), ("app-prefill", 4)):
        adapter = ChildObject(ObjectMeta(name=name, namespace="ns", uid=name), spec={"replicas": replicas})
        found = replace(found, children={**found.children, (KIND, name): adapter})
    plan = planned(found)
    (patch,) = [each for each in plan.intents if isinstance(each, Patch)]
    assert [each["value"] for each in patch.body if each["op"] == "add"] == [3, 4]
    assert len(plan.events) == 2


def test_scaling_follows_after_backend_is_recorded():
    found = with_adapter(ADAPTED, 5, ADAPTER_STATUS)
    stored = replace(found.stored, metadata=replace(found.stored.metadata, annotations={}))
    plan = planned(with_stored(found, stored))
    (patch,) = [each for each in plan.intents if isinstance(each, Patch) and each.target.name == "app"]
    assert patch.type is PatchType.MERGE
    assert plan.events == ()
