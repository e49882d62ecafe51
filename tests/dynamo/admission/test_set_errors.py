"""Errors of the rendered set name fields of the graph."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.api.field_errors import invalid
from grove.dynamo.admission import graph_validation
from grove.dynamo.admission.set_errors import errors_of_graph
from grove.rules.model import Facts
from tests.dynamo.builders import FACTS, KNOWN, alpha, component, deployment, engine, graph, rendered, service

BETA = deployment(component("Web", "frontend"), engine(["--tensor-parallel-size", "2"]))
ALPHA = alpha(Web=service("frontend"))


def path_of(body, path):
    (error,) = errors_of_graph(graph(body), rendered(body), [invalid(path, "v", "why")], Facts())
    return error.path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.template.priorityClassName", "spec.priorityClassName"),
        ("spec.template.topologyConstraint.pack.required", "spec.topologyConstraint.packDomain"),
        ("spec.template.cliques[0].spec.replicas", "spec.components[0].replicas"),
        (
            "spec.template.cliques[0].spec.podSpec.containers[0].image",
            "spec.components[0].podTemplate.spec.containers[main].image",
        ),
        (
            "spec.template.cliques[2].spec.podSpec.hostname",
            "spec.components[1].podTemplate.spec.hostname",
        ),
        (
            "spec.template.podCliqueScalingGroups[0].topologyConstraint.pack.required",
            "spec.components[1].topologyConstraint.packDomain",
        ),
        (
            "spec.template.cliques.spec.podSpec.schedulerName",
            "spec.components[*].podTemplate.spec.schedulerName",
        ),
        ("spec.template.terminationDelay", "spec"),
        ("spec.template.cliques[9].spec.replicas", "spec"),
    ],
)
def test_path_of_the_set_is_one_of_the_graph(path, expected):
    assert path_of(BETA, path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "spec.template.cliques[0].spec.podSpec.containers[0].env[1].name",
            "spec.services[Web].extraPodSpec.mainContainer.env[1].name",
        ),
        ("spec.template.cliques[0].spec.podSpec.hostname", "spec.services[Web].extraPodSpec.hostname"),
        ("spec.template.cliques.spec.podSpec.schedulerName", "spec.services[*].extraPodSpec.schedulerName"),
    ],
)
def test_path_in_v1alpha1_is_one_of_its_services(path, expected):
    assert path_of(ALPHA, path) == expected


def test_error_of_no_field_of_the_graph_keeps_its_text():
    (error,) = errors_of_graph(graph(BETA), rendered(BETA), [invalid("spec.other", 1, "why")], Facts())
    assert error.detail == "its PodCliqueSet is invalid: spec.other: Invalid value: 1: why"


def test_unlisted_scheduler_is_reported_at_the_pod_template():
    body = deployment(component())
    body["spec"]["components"][0]["podTemplate"]["spec"]["schedulerName"] = "unlisted"
    (error,) = graph_validation.on_create(body, KNOWN, FACTS).errors
    assert error.path == "spec.components[*].podTemplate.spec.schedulerName"


@given(st.text(max_size=40))
def test_any_path_is_mapped_without_an_exception(tail):
    assert path_of(BETA, f"spec.template.cliques[1].{tail}")
