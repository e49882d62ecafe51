"""Rules about the version that a graph is written in."""

from __future__ import annotations

import pytest

from grove import timing
from grove.dynamo.admission import graph_validation
from grove.dynamo.conversion.objects import converted
from tests.dynamo.builders import KNOWN, alpha, component, deployment, service

BETA_WITH_SERVICES = {**alpha(A=service()), "apiVersion": "nvidia.com/v1beta1"}


def errors(new, old=None):
    found = (
        graph_validation.on_create(new, KNOWN) if old is None else graph_validation.on_update(old, new, KNOWN)
    )
    return [str(each) for each in found.errors]


def test_fields_of_other_version_are_refused():
    (found,) = errors(BETA_WITH_SERVICES)
    assert "spec.services: Forbidden: no field of v1beta1, which has components" in found
    (found,) = errors({**deployment(component()), "apiVersion": "nvidia.com/v1alpha1"})
    assert "spec.components: Forbidden: no field of v1alpha1, which has services" in found
    assert not errors(alpha(A=service()))
    assert not errors(deployment(component()))


def test_graph_of_earlier_release_can_be_changed():
    changed = alpha(A=service(replicas=2))
    assert not errors({**changed, "apiVersion": "nvidia.com/v1beta1"}, BETA_WITH_SERVICES)
    assert errors({**changed, "apiVersion": "nvidia.com/v1beta1"}, deployment(component("A")))


def test_graph_that_is_too_large_to_be_preserved_is_refused():
    large = alpha(A=service(envs=[{"name": "A", "value": "x" * timing.MAX_PRESERVED}]))
    (found,) = errors(large)
    assert "spec: Forbidden: more than 128 KiB have no equivalent in v1beta1" in found
    assert not errors(large, large)


def test_annotations_that_leave_too_little_room_are_refused():
    """With kubectl apply they contain the whole manifest."""
    large = alpha(A=service(envs=[{"name": "A", "value": "x" * 100_000}]))
    assert not errors(large)
    large["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "x" * 170_000}
    (found,) = errors(large)
    assert "metadata.annotations: Forbidden: more than 256 KiB, with the fields that have no" in found
    assert not errors(large, large)


def test_graph_that_older_clients_cannot_read_is_a_warning():
    body = deployment(component(main={"args": ["x" * timing.MAX_ANNOTATIONS]}))
    assert graph_validation.on_create(body, KNOWN).warnings == ()
    body["spec"]["components"][0]["podTemplate"]["spec"]["containers"].insert(0, {"name": "x", "image": "y"})
    (found,) = graph_validation.on_create(body, KNOWN).warnings
    assert found.startswith(
        "spec: clients of v1alpha1, such as planners before Dynamo 1.4, do not get services"
    )


def changed(**fields):
    """A graph that was written in v1alpha1, as a client of v1beta1 changes its component."""
    body = converted(alpha(A=service(labels={"a": "b"})), "v1beta1")
    (found,) = body["spec"]["components"]
    return {**body, "spec": {**body["spec"], "components": [{**found, **fields}]}}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"resources": {"limits": {"gpu": "4"}}}, "spec.components[0].resources"),
        ({"envs": [{"name": "A"}]}, "spec.components[0].envs"),
        ({"scalingAdapter": True}, "spec.components[0].scalingAdapter"),
        ({"podTemplate": {"labels": {}}}, "spec.components[0].podTemplate.labels"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_field_that_restoring_alpha_would_drop_is_refused(fields, path):
    (found,) = errors(changed(**fields), changed())
    assert found.startswith(path)


@pytest.mark.parametrize("name", ["envs", "pvcs", "services"])
def test_spec_field_that_restoring_alpha_would_drop_is_refused(name):
    body = changed()
    body["spec"][name] = {"A": {"replicas": 3}} if name == "services" else [{"name": "a"}]
    (found,) = errors(body, changed())
    assert found.startswith(f"spec.{name}: Forbidden: no field of v1beta1")


def test_change_in_beta_of_graph_in_alpha_is_admitted():
    assert not errors(changed(replicas=3, sharedMemorySize="1Gi"), changed())
